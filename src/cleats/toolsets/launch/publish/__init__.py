"""Publishing of a finished change for review: one port, three drivers."""
