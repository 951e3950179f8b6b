"""Index a repository, search it, and keep the index well."""
