"""The cost of validating and comparing assets: our server on both wires compared with bare loops.

Run `python -m bench.assets`. Every contestant is a real process that reads newline-delimited JSON
from a pipe; the client is a blocking loop over prepared frames, so that its own cost is not
measured. Linux only: CPU time comes from /proc.
"""

QUICK_ARGUMENTS = ("--rounds", "1", "--seconds", "0.1")
