"""The programs that are measured."""
