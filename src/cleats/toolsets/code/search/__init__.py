"""Code search: from a question and filters to ranked chunks."""
