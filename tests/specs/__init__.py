"""The binding sentences of each spec, by id."""
