"""Index sharing: one builder and many readers, through a folder or an object store."""
