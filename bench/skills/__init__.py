"""What a catalogue of skills costs: to build, to keep and to use, with ten to ten thousand.

Run `python -m bench.skills`. Our server, FastMCP with its skills provider, and the bare limit (a
loop that only reads the directory and the files) get the same folders. Linux only: CPU time and
memory come from /proc.
"""

QUICK = ("--rounds", "1", "--sizes", "10")
