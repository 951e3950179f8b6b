"""What finding code costs, and how well it finds: `python -m bench.code`."""

WHOLE = ("--corpora", "small")
QUICK = ("--corpora", "small", "--costs-only", "--only", "cleats,bare")
