"""Discovery of the files to index, and of the reasons to skip the others."""
