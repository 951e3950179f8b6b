"""What validating and comparing assets costs: our server on both wires beside bare loops.

Run `python -m bench.assets`. Every contestant is a real process that reads newline-delimited JSON
from a pipe; the client is a blocking loop over prepared frames, so that it is not what gets
measured. Linux only: CPU time comes from /proc.
"""

QUICK = ("--rounds", "1", "--seconds", "0.1")
