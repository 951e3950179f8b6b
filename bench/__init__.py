"""Benchmarks: Cleats compared with the alternatives, in one run, on this machine."""
