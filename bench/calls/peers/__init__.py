"""The servers that are compared: one file each, started as a script in its own process."""
