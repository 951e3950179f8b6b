"""Benchmarks: side by side with the alternatives, in one run, on the machine at hand."""
