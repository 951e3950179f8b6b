"""The commands: the only code that reads the environment and the only code that exits."""
