"""The reference pages in `docs/`, generated from the tables that the program uses.

`python -m cleats.cli.reference` writes them, `--check` reports which are out of date.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from cleats import app
from cleats.cli.main import cli
from cleats.cli.output import format_duration
from cleats.cli.tools import describe_hints, first_sentence, format_examples, list_arguments
from cleats.contract.errors import KERNEL_CODES, ErrorCode
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool, Toolset
from cleats.contract.versions import SCHEMA_VERSION
from cleats.settings import Settings, list_setting_rows
from cleats.transports.http.routes import API_ROUTES, MCP_PATH

TableRenderer = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

START_EXAMPLE = """\
```sh
cleats http --port 7345 &      # this machine only; --port 0 --json takes and names a free port
curl -s --retry 20 --retry-delay 1 --retry-connrefused localhost:7345/health
curl -s localhost:7345/tools/check_status -H 'content-type: application/json' -d '{}'
curl -sN localhost:7345/search/stream -H 'content-type: application/json' -d '{"query": "open"}'
```"""

ENVELOPE_TEXT = """\
Every JSON answer is one envelope, `{"ok": true, "result": …, "_meta": …}` or
`{"ok": false, "error": {"code", "message", "retryable", "hint"?, "details"?}, "_meta": …}`;
`/openapi.json` alone is a document of its own. `result` is what the tool answers on every other
surface: the object of an assets tool with its own `ok`, the content of a skill in `content`. An
`X-Request-Id` of the caller comes back as `_meta.requestId`, a `traceparent` becomes the parent of
the call's span."""

STREAMS_TEXT = """\
A stream is `text/event-stream`: `start`, any number of `progress` (`{phase, message}`, at most four
a second; none for `/status/stream`), `result` or `error`, and always `done`; the data of each is
an envelope. What is wrong with the request itself is a status, not an event. A client that
disconnects cancels its call, and the processes of the call end."""

REQUEST_CHECKS = (
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

TOKENS_TEXT = """\
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

LOAD_BALANCER_TEXT = """\
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

MCP_TEXT = """\
`/mcp` is MCP over streamable HTTP: the same server, the same tools, the same door. With
`protocol = pin` a handshake is answered with 2025-11-25 there too. A client of 2026 cancels a call
by disconnecting, as on the other routes. One of 2025 that disconnects may only have lost its
network, as that version of MCP has it: its call goes on until it is done or late, unless the
client sends `notifications/cancelled` or ends its session with `DELETE`."""


def render_http_page(render_table: TableRenderer) -> Iterator[str]:
    """Yield the blocks of the page about routes, streams, checks, statuses and settings."""
    yield START_EXAMPLE
    yield render_table(
        ("Method", "Path", "What it is"),
        [
            *((", ".join(row.methods), f"`{row.path}`", row.about) for row in API_ROUTES),
            ("any", f"`{MCP_PATH}`", "MCP over streamable HTTP."),
        ],
    )
    yield MCP_TEXT
    yield "## Answers\n\n" + ENVELOPE_TEXT
    yield STREAMS_TEXT
    yield "## Tokens\n\n" + TOKENS_TEXT
    yield "## Behind a load balancer\n\n" + LOAD_BALANCER_TEXT
    yield "## What is checked, in this order"
    yield render_table(("When", "Status"), REQUEST_CHECKS)
    yield "An error never says where on the machine something is, outside the repositories served."
    yield "## Statuses"
    by_status: dict[int, list[str]] = {}
    for code in ErrorCode:
        by_status.setdefault(code.http, []).append(f"[`{code.name}`](errors.md#{code.name.lower()})")
    yield render_table(
        ("Status", "Codes"),
        ((str(status), ", ".join(codes)) for status, codes in sorted(by_status.items())),
    )
    yield "413 and 415 come with `INVALID_REQUEST` when it is the request that is meant."
    yield "## Settings"
    yield render_table(
        ("Setting", "Variable", "What it decides"),
        ((f"`{row.name}`", f"`{row.env}`", row.about) for row in list_setting_rows() if row.name.startswith("http_")),
    )


GENERATED_MARK = "<!-- Generated by `make docs` from the program's own tables; edit those. -->"

EXAMPLES_MARK = "<!-- not run: what is asked for is yours; arguments are checked by the tests -->"

SETTINGS_EXAMPLE = """\
```toml
# .cleats.toml
concurrency = 4
log_level = "warning"

[timeouts]
search = 30
```"""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("docs"))
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when a page is out of date.")
def reference(folder: Path, *, check: bool) -> None:
    """Write the reference pages into FOLDER."""
    page_texts = {folder / name: text for name, text in render_pages().items()}
    stale = {path: text for path, text in page_texts.items() if _read_page(path) != text}
    for path, text in stale.items():
        if check:
            click.echo(f"{path} is out of date; run: make docs", err=True)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            click.echo(f"Wrote {path}.", err=True)
    sys.exit(1 if check and stale else 0)


def render_pages() -> dict[str, str]:
    """Return the text of every page by file name."""
    registry = app.build_registry(Settings(), app.BUILTIN_TOOLSETS)
    return {
        "tools.md": _assemble_page("Tools", render_tools_page(registry)),
        "errors.md": _assemble_page("Errors", render_errors_page(registry)),
        "http.md": _assemble_page("HTTP", render_http_page(render_table)),
        "settings.md": _assemble_page("Settings", render_settings_page()),
        "commands.md": _assemble_page("Commands", render_commands_page()),
    }


def render_tools_page(registry: Registry) -> Iterator[str]:
    """Yield the blocks of the page about tools: purpose, arguments and errors."""
    yield (
        f"The contract is at version {SCHEMA_VERSION}; the number of a tool is its own "
        "`schemaVersion`. `contracts/tools.json` has the same with every schema in full, and "
        "`cleats tools --show TOOL` shows it in a terminal."
    )
    for toolset in registry.toolsets:
        yield f"## {toolset.name}\n\n{toolset.purpose}"
        yield _render_overview(toolset)
        for tool in sorted(toolset.tools, key=lambda tool: tool.name):
            yield from _render_tool(tool)


def _render_overview(toolset: Toolset) -> str:
    return render_table(
        ("Tool", "Version", "Timeout", "What it does"),
        (
            (
                f"[`{listed_tool.name}`](#{listed_tool.name})",
                str(listed_tool.version),
                format_duration(listed_tool.timeout),
                first_sentence(_describe_tool(listed_tool)),
            )
            for listed_tool in sorted(toolset.tools, key=lambda tool: tool.name)
        ),
    )


def _render_tool(tool: Tool) -> Iterator[str]:
    yield f"### {tool.name}\n\n{_describe_tool(tool)}"
    alias_notes = "".join(f" Old name: `{item.name}` (deprecated since {item.deprecated})." for item in tool.aliases)
    yield f"*{describe_hints(tool).capitalize()}. Answers with: {tool.payload.name}.*{alias_notes}"
    if arguments := list_arguments(tool):
        yield render_table(
            ("Argument", "Type", "", "What it means"),
            ((f"`{item.name}`", item.kind, item.presence, item.about) for item in arguments),
        )
    else:
        yield "Takes no arguments."
    if tool.errors:
        yield "Errors of its own: " + ", ".join(_link_error(code) for code in tool.errors) + "."
    yield f"{EXAMPLES_MARK}\n```sh\n" + "\n".join(format_examples(tool)) + "\n```"


def _describe_tool(tool: Tool) -> str:
    if isinstance(tool.description, str):
        return tool.description
    return "Its description tells the agent what is installed on the machine at that moment."


def render_errors_page(registry: Registry) -> Iterator[str]:
    """Yield the blocks of the page about error codes."""
    yield (
        "Every failure has one of these codes, whatever the wire. A code, once published, keeps "
        "its meaning. The status is that of HTTP, the number that of a JSON-RPC error; over MCP a "
        "tool that ran and failed answers with a result whose `isError` is true instead."
    )
    yield render_table(
        ("Code", "What happened", "What to do", "Retry", "Status", "Number"),
        (
            (
                f'<a id="{code.name.lower()}"></a>`{code.name}`',
                code.value.meaning,
                code.value.remedy,
                "yes" if code.value.retryable else "no",
                str(code.http),
                str(code.rpc),
            )
            for code in ErrorCode
        ),
    )
    yield "## Who answers what"
    kernel_codes = ", ".join(_link_error(code) for code in KERNEL_CODES)
    tool_errors = [(f"[`{tool.name}`](tools.md#{tool.name})", tool.errors) for tool in registry if tool.errors]
    yield render_table(
        ("Tool", "Codes"),
        [("any", kernel_codes), *((name, ", ".join(map(_link_error, codes))) for name, codes in tool_errors)],
    )


def render_settings_page() -> Iterator[str]:
    """Yield the blocks of the page about settings."""
    yield (
        "A setting comes from the first place that has it: the environment, `.cleats.toml` in the "
        "repository (the nearest one from the working folder up to its root), "
        "`~/.config/cleats/config.toml`, the default. An unknown name or a bad value stops the "
        "program with exit code 2 and says where it stands. `cleats doctor` shows the settings in "
        "force and where each came from."
    )
    yield (
        "Those marked *yours only* cannot come from a repository's file: a checkout must not be "
        "able to send data elsewhere or write outside itself."
    )
    yield render_table(
        ("Setting", "Variable", "Type", "Default", "What it does"),
        (
            (
                f"`{row.name}`",
                f"`{row.env}`",
                row.kind,
                f"`{row.default}`" if row.default else "",
                row.about + (" *Yours only.*" if row.private else ""),
            )
            for row in list_setting_rows()
        ),
    )
    yield SETTINGS_EXAMPLE


def render_commands_page() -> Iterator[str]:
    """Yield the blocks of the page about commands, from their help texts."""
    yield from _render_command(cli, click.Context(cli, info_name="cleats"))


def _render_command(command: click.Command, ctx: click.Context) -> Iterator[str]:
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    yield f"## {ctx.command_path}\n\n```text\n{usage}\n```"
    yield from _render_help(command.help or "")
    options = [param for param in command.params if isinstance(param, click.Option)]
    records = [record for option in options if (record := option.get_help_record(ctx))]
    if records:
        yield render_table(("Option", "What it does"), ((f"`{name}`", about) for name, about in records))
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            subcommand = command.get_command(ctx, name)
            if subcommand is not None:
                yield from _render_command(subcommand, click.Context(subcommand, info_name=name, parent=ctx))


def _render_help(text: str) -> Iterator[str]:
    """Render a help text: paragraphs that click does not wrap become blocks, others prose."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        block = paragraph.removeprefix("\b\n")
        yield " ".join(paragraph.split()) if block == paragraph else f"```text\n{block}\n```"


def render_table(headers: Sequence[str], rows_of_cells: Iterable[Sequence[str]]) -> str:
    """Render a Markdown table."""
    lines = [headers, ["---"] * len(headers), *rows_of_cells]
    return "\n".join("| " + " | ".join(map(_escape_cell, line)) + " |" for line in lines)


def _escape_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _link_error(code: ErrorCode) -> str:
    return f"[`{code.name}`](errors.md#{code.name.lower()})"


def _assemble_page(title: str, blocks: Iterable[str]) -> str:
    return "\n\n".join([GENERATED_MARK, f"# {title}", *blocks]) + "\n"


def _read_page(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    reference()
