"""The toolsets. Each begins with tools.py, its table of contents."""
