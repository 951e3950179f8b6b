"""The reference page of the HTTP API and the other wires, from the table of routes."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from cleats.contract.errors import ErrorCode
from cleats.settings import rows
from cleats.transports.http.rows import MCP_PATH, ROUTES

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

START = """\
```sh
cleats http --port 7345 &      # this machine only; --port 0 --json takes and names a free port
curl -s --retry 20 --retry-delay 1 --retry-connrefused localhost:7345/health
curl -s localhost:7345/tools/check_status -H 'content-type: application/json' -d '{}'
curl -sN localhost:7345/search/stream -H 'content-type: application/json' -d '{"query": "open"}'
```"""

ENVELOPE = """\
Every JSON answer is one envelope, `{"ok": true, "result": …, "_meta": …}` or
`{"ok": false, "error": {"code", "message", "retryable", "hint"?, "details"?}, "_meta": …}`;
`/openapi.json` alone is a document of its own. `result` is what the tool answers on every other
surface: the object of an assets tool with its own `ok`, the content of a skill in `content`. An
`X-Request-Id` of the caller comes back as `_meta.requestId`, a `traceparent` becomes the parent of
the call's span."""

STREAMS = """\
A stream is `text/event-stream`: `start`, any number of `progress` (`{phase, message}`, at most four
a second; none for `/status/stream`), `result` or `error`, and always `done`; the data of each is
an envelope. What is wrong with the request itself is a status, not an event. A client that
disconnects cancels its call, and the processes of the call end."""

CHECKS = (
    ("an `Origin` that is not allowed, also of a preflight", "403"),
    ("`OPTIONS`, for any path", "204"),
    ("a token is set and the request does not bring it, on every route", "401"),
    ("a `Host` that the server does not go by", "403"),
    ("a token that has had its requests for now; `Retry-After` says when", "429"),
    ("no such route, or not for this method", "404"),
    ("a body that is not `application/json`", "415"),
    ("a body over `http_body_limit`; the connection is closed", "413"),
    ("a body that is not a JSON object", "400"),
    ("arguments that do not fit the tool's schema", "400"),
    ("a repository outside the default one and `http_roots`, wherever links lead", "403"),
    ("a repository that is no folder", "400"),
)

TOKENS = """\
`http_token` is one token for everybody. `http_tokens` names a TOML file with any number of them,
each with a name, the SHA-256 of the token, and what it may do; `cleats token new NAME` makes a
token and its entry.

```toml
[[token]]
name = "ci"
sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
toolsets = ["code"]            # all that are served, when left out
repositories = ["/srv/repos"]  # the server's own and those of http_roots, when left out
per_minute = 120               # requests; any number, when left out
burst = 20                     # how many of them at once; per_minute, when left out
```

A tool that a token does not have is neither listed nor found, on every route and over MCP; an MCP
session belongs to the token that opened it. A call that names no repository is about the server's
own when the token may use it, else about the first that it names. The file is read at the start.
[The threat model](threat-model.md) says what this is good for and what not."""

BALANCED = """\
- `/health` says that the process runs, `/ready` whether to send it requests: 503 with `UNAVAILABLE`
  while it is about to stop, or when a store that a toolset needs cannot be reached. Probes that
  have no token, or come under another name, need `http_probes = open`.
- On SIGTERM `/ready` is 503 at once; the server goes on for `http_linger` seconds, takes no more
  connections, lets running calls finish for `drain` seconds, and ends with exit code 0.
- MCP clients of 2026 need no session. With `http_sessions = off` those of 2025 get none either, and
  any instance can answer any request.
- A session of 2025 ends after 30 minutes without a request; an open stream is one. Its id then gets
  404, and the client opens another. An instance keeps 10,000 of them; whoever wants one more gets
  503.
- `http_access_log` has a JSON line for every request: `time, method, route, status, ms, bytes,
  token, client, requestId`. `http_audit_log` has one for every call: `time, token, tool, repo,
  outcome, code, ms, surface, requestId`. Neither has arguments, bodies or query strings, and a full
  disk fails no request.
- `/metrics` has calls by `tool` and `outcome` (`cleats_calls_total`), their times by `tool`
  (`cleats_call_seconds`), and requests by `method`, `route` and `status`
  (`cleats_http_requests_total`)."""

WIRES = """\
`/mcp` is MCP over streamable HTTP: the same server, the same tools, the same door. With
`protocol = pin` a handshake is answered with 2025-11-25 there too. A client of 2026 cancels a call
by disconnecting, as on the other routes. One of 2025 that disconnects may only have lost its
network, as that version of MCP has it: its call goes on until it is done or late, unless the
client sends `notifications/cancelled` or ends its session with `DELETE`."""


def http_page(table: Table) -> Iterator[str]:
    """Routes, streams, checks, statuses, settings."""
    yield START
    yield table(
        ("Method", "Path", "What it is"),
        [
            *((", ".join(row.methods), f"`{row.path}`", row.about) for row in ROUTES),
            ("any", f"`{MCP_PATH}`", "MCP over streamable HTTP."),
        ],
    )
    yield WIRES
    yield "## Answers\n\n" + ENVELOPE
    yield STREAMS
    yield "## Tokens\n\n" + TOKENS
    yield "## Behind a load balancer\n\n" + BALANCED
    yield "## What is checked, in this order"
    yield table(("When", "Status"), CHECKS)
    yield "An error never says where on the machine something is, outside the repositories served."
    yield "## Statuses"
    by_status: dict[int, list[str]] = {}
    for code in ErrorCode:
        by_status.setdefault(code.http, []).append(
            f"[`{code.name}`](errors.md#{code.name.lower()})"
        )
    yield table(
        ("Status", "Codes"),
        ((str(status), ", ".join(codes)) for status, codes in sorted(by_status.items())),
    )
    yield "413 and 415 come with `INVALID_REQUEST` when it is the request that is meant."
    yield "## Settings"
    yield table(
        ("Setting", "Variable", "What it decides"),
        (
            (f"`{row.name}`", f"`{row.env}`", row.about)
            for row in rows()
            if row.name.startswith("http_")
        ),
    )
