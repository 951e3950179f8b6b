"""Schemas, examples, validation, patches and publishing."""
