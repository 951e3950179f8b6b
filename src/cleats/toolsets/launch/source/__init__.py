"""The source repository, read: git, files, manifests, documents, claims and their evidence."""
