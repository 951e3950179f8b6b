"""What each programming language says: one table per language, one engine that reads them."""
