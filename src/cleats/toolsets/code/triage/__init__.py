"""Triage: what scanners found, what people decided about it, and what the code says to it."""
