"""The reference page of the HTTP API and the other wires, from the table of routes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields

from cleats.contract.errors import ErrorCode
from cleats.settings import Settings, rows
from cleats.transports.http.rows import MCP_PATH, ROUTES

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

START = """\
```sh
cleats http                        # http://127.0.0.1:7345, this machine only
cleats http --port 0 --json        # a free port, named in the first line on stdout
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
a second), `result` or `error`, and always `done`; the data of each is an envelope. What is wrong
with the request itself is a status, not an event. A client that disconnects cancels its call, and
the processes of the call end."""

CHECKS = (
    ("an `Origin` that is not allowed, also of a preflight", "403"),
    ("`OPTIONS`, for any path", "204"),
    ("a token is set and the request does not bring it, on every route", "401"),
    ("a `Host` that the server does not go by", "403"),
    ("no such route, or not for this method", "404"),
    ("a body that is not `application/json`", "415"),
    ("a body over `http_body_limit`; the connection is closed", "413"),
    ("a body that is not a JSON object", "400"),
    ("arguments that do not fit the tool's schema", "400"),
    ("a repository outside the default one and `http_roots`, wherever links lead", "403"),
    ("a repository that is no folder", "400"),
)

WIRES = """\
`/mcp` is MCP over streamable HTTP: the same server, the same tools, the same door. With
`protocol = pin` a handshake is answered with 2025-11-25 there too."""


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
    names = {item.name for item in fields(Settings) if item.name.startswith("http_")}
    yield table(
        ("Setting", "Variable", "What it decides"),
        ((f"`{row.name}`", f"`{row.env}`", row.about) for row in rows() if row.name in names),
    )
