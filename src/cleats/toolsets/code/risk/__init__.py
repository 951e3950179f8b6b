"""Where untrusted values enter, where they do harm, and whether one reaches the other."""
