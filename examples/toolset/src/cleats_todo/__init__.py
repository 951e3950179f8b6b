"""A list of things to do that agents share, as a toolset for Cleats."""
