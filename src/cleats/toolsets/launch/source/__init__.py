"""Analysis of the source repository: git, files, manifests, documents, claims and evidence."""
