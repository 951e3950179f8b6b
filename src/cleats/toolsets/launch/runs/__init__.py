"""The data of a run: states, events, issues, artifacts, and the folder that holds them."""
