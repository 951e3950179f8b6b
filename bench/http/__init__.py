"""What a request of the HTTP API costs, beside a bare Starlette route and beside no HTTP at all."""

QUICK = ("--rounds", "1", "--seconds", "1")
