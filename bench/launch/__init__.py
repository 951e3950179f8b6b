"""What runs cost: to list and to look at among ten thousand, to record, to start, and a whole one.

Run `python -m bench.launch`. Lists and status are asked of a real server over MCP, beside the same
questions put to SQLite itself; steps of the journal beside bare inserts into a file with the same
settings; the start of a server with launch beside one with assets alone. A whole run writes the
bundled sample package into the bundled sample site, with real git and real Hugo.
"""

QUICK = ("--rounds", "1", "--sizes", "1,1000", "--steps", "200", "--no-run")
