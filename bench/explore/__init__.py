"""The tools of `explore` on a repository without an index, beside ripgrep."""

QUICK_ARGUMENTS = ("--rounds", "1")
