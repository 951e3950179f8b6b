"""Vectors by which `delete` and `remove` are neighbours: a table of words, and sums of its rows."""
