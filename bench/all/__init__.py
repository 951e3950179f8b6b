"""Every benchmark in one go, as one table of ratios that can be kept and compared.

Run `python -m bench.all`. Each package beside this one that can be run is a benchmark; what it is
run with stands in its `WHOLE` and `QUICK`. Each runs in a process of its own, one after another.
"""
