"""`cleats launch`: start runs, follow them, decide about them."""
