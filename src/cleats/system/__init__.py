"""The one implementation of each system concept: processes, git, HTTP, files, locks, PostgreSQL."""
