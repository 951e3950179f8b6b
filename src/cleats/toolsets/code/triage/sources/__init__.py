"""The formats of scanners, one module each: pure functions from a document to findings."""
