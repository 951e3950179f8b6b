"""How much an agent has to read to find the code that a defect is in: ripgrep alone, or Cleats."""
