"""Several processes that serve one port: connections from a supervisor, requests for one another, added figures."""
