"""How an index is made and kept fresh."""
