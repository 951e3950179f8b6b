"""The code toolset: for now, what a server can say about itself."""
