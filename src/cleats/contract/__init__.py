"""What we promise: pure values, no I/O, no async."""
