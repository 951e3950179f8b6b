"""Documents, data, configuration and logs: how each format is cut into chunks."""
