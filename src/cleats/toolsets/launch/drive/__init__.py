"""How a run gets from its first state to its last."""
