"""The wire of spec a: Content-Length frames, for clients that know nothing newer. Deprecated."""
