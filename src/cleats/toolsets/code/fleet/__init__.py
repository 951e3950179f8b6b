"""One builder, many readers: generations shared through a folder or an object store."""
