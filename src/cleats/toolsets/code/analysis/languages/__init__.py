"""Programming languages: one table per language, and one engine that reads the tables."""
