"""What git knows about a repository: where it stands, and who wrote what."""
