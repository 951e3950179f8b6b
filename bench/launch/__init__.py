"""The cost of runs: listing and status among ten thousand, recording, starting, and a whole run.

Run `python -m bench.launch`. Lists and status are requested from a real server over MCP and
compared with the same queries in SQLite; steps of the journal are compared with bare inserts into a
file with the same settings, and the start of a server with launch with one that has only assets. A
whole run writes the bundled sample package into the bundled sample site, with real git and real
Hugo.
"""

QUICK_ARGUMENTS = ("--rounds", "1", "--sizes", "1,1000", "--steps", "200", "--no-run")
