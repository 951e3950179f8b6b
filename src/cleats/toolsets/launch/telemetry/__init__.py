"""What is recorded of runs for those who watch many of them, and how it gets to them."""
