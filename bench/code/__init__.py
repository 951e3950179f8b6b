"""The cost and the quality of code search: `python -m bench.code`."""

FULL_ARGUMENTS = ("--corpora", "small")
QUICK_ARGUMENTS = ("--corpora", "small", "--costs-only", "--only", "cleats,bare")
