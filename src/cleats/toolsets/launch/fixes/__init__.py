"""Repairs of the issues that gates report: small rules by error code, none of which guesses."""
