"""Looking after indexes: what is there, what it costs, and how it is packed and removed."""
