"""Word vectors in which `delete` and `remove` are neighbours: a word table and sums of its rows."""
