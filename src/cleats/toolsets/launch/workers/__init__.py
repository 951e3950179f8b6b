"""The workers of a run: each step runs in a separate process."""
