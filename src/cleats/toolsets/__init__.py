"""What we can do. Each toolset begins with tools.py, its table of contents."""
