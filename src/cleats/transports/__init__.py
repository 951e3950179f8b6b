"""How the world speaks to us."""
