"""Where an index is kept: the catalogue, the generations, and who holds which."""
