"""Real agent clients against Cleats, with a scripted model on this machine in place of a real one."""
