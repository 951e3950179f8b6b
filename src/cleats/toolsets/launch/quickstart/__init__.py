"""From a URL to a run configuration: product pages, and repositories whose product is guessed."""
