"""A corpus beyond one machine: generations published to an OpenSearch, and searched there."""
