"""Planning of a launch: its pages, their files, and the addresses at which the site serves them."""
