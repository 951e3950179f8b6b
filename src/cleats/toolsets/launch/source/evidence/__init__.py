"""Product facts and claims, each with the lines that prove it."""
