"""The start of a server: from the command to the answers of `initialize` and `tools/list`.

Run `python -m bench.start`. Every server is a real process; "warm" means that its byte code is compiled, "cold" that
every module, those of the standard library too, is compiled during the start. Linux only: CPU time comes from /proc.
"""

QUICK_ARGUMENTS = ("--rounds", "1")
