"""Which pages a launch writes, where they lie, and where Hugo will serve them."""
