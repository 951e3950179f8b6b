"""Runs on many machines: who drives what, and who takes over from whom."""
