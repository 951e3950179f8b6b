"""Queries: arguments, the query language, filters, and the request they become."""
