"""The cost of a request of the HTTP API, compared with a bare Starlette route and with no HTTP."""

QUICK_ARGUMENTS = ("--rounds", "1", "--seconds", "1")
