"""Checks of the requests to OpenSearch against the specification of its interface."""
