"""Skills: instructions that agents load when they need them. `tools` is the table of contents."""
