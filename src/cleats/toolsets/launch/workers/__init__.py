"""What does the work of a run, one step at a time, each in a process of its own."""
