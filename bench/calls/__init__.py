"""The cost of one tool call over stdio: our server and its peers, with the same echo tool.

Run `python -m bench.calls`. Every server is a real process that reads newline-delimited JSON from a
pipe; the client is a blocking loop over prepared frames, so that its own cost is not measured.
Linux only: CPU time and memory come from /proc.
"""

QUICK_ARGUMENTS = ("--rounds", "1", "--calls", "300")
