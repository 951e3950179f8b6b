"""Risk analysis: sources of untrusted values, sinks that they can harm, and flows between them."""
