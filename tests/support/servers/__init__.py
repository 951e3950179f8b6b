"""Servers that tests start as real processes."""
