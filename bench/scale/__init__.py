"""Costs in large repositories: discovery of up to a million files, and an index of a repository that is given."""

QUICK_ARGUMENTS = ("--files", "2000", "--rounds", "1")
FULL_ARGUMENTS = ("--files", "1000", "100000")
