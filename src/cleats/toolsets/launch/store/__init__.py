"""Stores of runs: the interface of a store and its implementations."""
