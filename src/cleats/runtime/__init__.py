"""How a call runs."""
