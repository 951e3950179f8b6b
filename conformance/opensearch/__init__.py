"""What is sent to an OpenSearch, held against the description of its interface."""
