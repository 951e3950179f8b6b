"""Skills: instructions that agents load when they need them. `tools` lists the tools."""
