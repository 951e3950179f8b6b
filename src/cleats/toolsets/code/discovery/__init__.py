"""Which files are worth reading, as what, and which are not and why."""
