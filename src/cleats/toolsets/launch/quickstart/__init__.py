"""From an address to a configuration: product pages, and repositories that have to be guessed."""
