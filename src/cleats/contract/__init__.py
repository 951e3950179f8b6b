"""The public contract as pure values, without I/O and without async code."""
