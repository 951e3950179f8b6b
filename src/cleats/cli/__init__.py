"""The commands. The only reader of the environment, the only place that exits."""
