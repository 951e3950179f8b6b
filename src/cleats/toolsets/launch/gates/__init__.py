"""The gates a launch must pass, one module each."""
