"""A fleet on networks that fail: every machine in a network namespace of its own. Run with `make networks`."""
