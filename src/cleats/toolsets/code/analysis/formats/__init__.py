"""Documents, data, configuration and logs: the division of each format into chunks."""
