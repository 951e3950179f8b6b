"""Every benchmark in one run, as one table of ratios that can be saved and compared.

Run `python -m bench.all`. Each package next to this one that can be run is a benchmark; its
arguments are in its `FULL_ARGUMENTS` and `QUICK_ARGUMENTS`. Each runs in a separate process, one
after another.
"""
