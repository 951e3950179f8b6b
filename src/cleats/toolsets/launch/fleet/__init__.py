"""Runs on many machines: the queue of runs and the workers that drive them."""
