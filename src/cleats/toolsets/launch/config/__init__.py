"""The configuration of a run: normalisation, defaults, secrets and redaction."""
