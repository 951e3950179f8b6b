"""Repairs of what the gates find: small rules by error code, and nothing that needs a guess."""
