"""How a finished change reaches its reviewers: one port, three drivers."""
