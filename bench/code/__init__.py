"""What finding code costs, and how well it finds: `python -m bench.code`."""
