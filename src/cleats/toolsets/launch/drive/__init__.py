"""The run engine: it drives a run from its first state to its last."""
