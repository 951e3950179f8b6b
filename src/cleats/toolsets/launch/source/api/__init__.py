"""The public API of a package, read without running it."""
