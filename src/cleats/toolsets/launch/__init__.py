"""Product launches: a repository in, the pages of its site out, every statement with evidence."""
