"""The site repository: its kind, its pages, its configuration, and the URLs that it serves."""
