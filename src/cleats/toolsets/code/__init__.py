"""The code toolset: index repositories, search them, and report on indexes and the server."""
