"""Documents of a repository as blocks, sentences and snippets."""
