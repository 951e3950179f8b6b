"""Readers of scanner formats, one module each: pure functions from a document to findings."""
