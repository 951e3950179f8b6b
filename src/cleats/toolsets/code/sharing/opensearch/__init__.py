"""Index generations published to an OpenSearch cluster and searched there."""
