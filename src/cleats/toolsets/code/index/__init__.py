"""Storage of indexes: the catalogue, the generations, and the locks on them."""
