"""The loops that our server is measured against."""
