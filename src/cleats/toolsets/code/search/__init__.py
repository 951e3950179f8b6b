"""Finding code: from a question and some filters to ranked pieces of files."""
