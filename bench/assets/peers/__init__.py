"""The loops that our server is compared with."""
