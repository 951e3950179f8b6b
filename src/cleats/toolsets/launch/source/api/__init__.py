"""The public API of a package: what it offers to those who import it."""
