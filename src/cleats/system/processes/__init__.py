"""Commands and child processes that cannot outlive their caller."""
