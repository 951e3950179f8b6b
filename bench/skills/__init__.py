"""The cost of a catalogue of ten to ten thousand skills: building it, keeping it, using it.

Run `python -m bench.skills`. Our server, FastMCP with its skills provider, and the bare limit (a
loop that only reads the directory and the files) get the same folders. Linux only: CPU time and
memory come from /proc.
"""

QUICK_ARGUMENTS = ("--rounds", "1", "--sizes", "10")
