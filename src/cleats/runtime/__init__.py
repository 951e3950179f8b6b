"""Execution of calls."""
