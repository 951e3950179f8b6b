"""The HTTP API of spec b §7: routes, guards, streams and the documents that describe them."""
