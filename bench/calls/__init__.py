"""What one tool call costs over stdio: our server beside its peers, with the same echo tool.

Run `python -m bench.calls`. Every server is a real process that reads newline-delimited JSON
from a pipe; the client is a blocking loop over prepared frames, so that it is not what gets
measured. Linux only: CPU time and memory come from /proc.
"""

QUICK = ("--rounds", "1", "--calls", "300")
