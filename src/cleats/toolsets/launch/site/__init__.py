"""The site repository: its pages, its Hugo configuration, and the URLs that Hugo serves."""
