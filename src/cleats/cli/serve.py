"""The commands that serve: `serve`, `http` and `worker`, and `token`, which makes tokens for callers."""

import dataclasses
import errno
import gc
import json
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from cleats.cli import tool_command
from cleats.cli.tool_command import skill_options
from cleats.runtime import early_signals
from cleats.settings import SettingError, Settings, replace_settings

if TYPE_CHECKING:
    import socket

    from cleats.contract.tools import Toolset
    from cleats.runtime.server_status import ServerStatus

LEGACY_WIRE_WARNING = (
    "Deprecated: the legacy wire gets no new features and will be removed in a later release. Use `cleats serve` (MCP)."
)

DEFAULT_PORT = 7345

_PORT_RANGE = click.IntRange(0, 65535)
_PORT_HELP = "Port to listen on; 0 selects a free port."
_WORKERS_HELP = "Number of processes that share the port; they use that many CPU cores. More than one needs Linux."
_CONCURRENCY_HELP = "Number of launch runs to execute at the same time; 0 executes none."
_REPOSITORY_HELP = (
    "Allow this repository, or the repositories in this folder; repeatable. [default: that of the server]"
)

_folder_type = click.Path(path_type=Path, exists=True, file_okay=False)
_toolsets_argument = click.argument("toolsets", nargs=-1, shell_complete=tool_command.complete_toolsets)
_repo_option = click.option(
    "--repo", type=_folder_type, help="Default repository for calls that do not name one. [default: current folder]"
)


@contextmanager
def _start_server(
    settings: Settings,
    toolsets: tuple[str, ...],
    repo: Path | None,
    *,
    tools: str | None = None,
    read_only: bool = False,
    expects_client: bool = False,
) -> Iterator[tuple[Settings, list["Toolset"], "ServerStatus", tuple[int, int]]]:
    from cleats.transports.stdio import claim_stdio  # noqa: PLC0415

    if repo is not None:
        settings = replace(settings, project_dir=repo.absolute())
    with claim_stdio() as descriptors:
        gc.disable()  # until the app has imported and built everything
        from cleats import app  # noqa: PLC0415
        from cleats.runtime.background_writer import PROCESS_JOURNAL, log_to_stderr  # noqa: PLC0415
        from cleats.runtime.server_status import ServerStatus  # noqa: PLC0415

        for name in app.find_unknown_toolsets(toolsets):
            toolset_names = ", ".join(app.list_toolset_names())
            raise click.UsageError(f"Unknown toolset {name!r}. Known toolsets: {toolset_names}.")
        log_to_stderr(settings.log_level)
        if expects_client and os.isatty(descriptors[0]):
            click.echo("Waiting for a client on stdin. `cleats client-config` shows how to connect one.", err=True)
        status = ServerStatus()
        tool_names = [name.strip() for name in (tools or "").split(",") if name.strip()]
        served = app.load_toolsets(settings, toolsets, status)
        if tool_names or read_only:
            served = _select_tools(served, tool_names, read_only=read_only)
        try:
            yield settings, served, status, descriptors
        finally:
            PROCESS_JOURNAL.close()


@click.command()
@_toolsets_argument
@click.option(
    "--wire",
    type=click.Choice(["mcp", "rpc", "legacy"]),
    help="Protocol: MCP, JSON-RPC lines whose method is the tool (rpc), or deprecated Content-Length frames (legacy). "
    "[default: mcp]",
)
@_repo_option
@click.option("--tools", metavar="A,B", help="Serve only these tools, by name.")
@click.option("--read-only", is_flag=True, help="Omit every tool that changes something.")
@skill_options
def serve(  # noqa: PLR0917 - click passes them by name
    settings: Settings,
    toolsets: tuple[str, ...],
    wire: str | None,
    repo: Path | None,
    tools: str | None,
    read_only: bool,
) -> None:
    """Serve TOOLSETS (all of them by default) to one agent over stdin and stdout.

    The agent starts this command itself; `cleats install CLIENT` registers it. Messages go to stdout, one log
    line per call to stderr. When the input ends, or on SIGINT or SIGTERM, the server answers the calls in
    progress and exits with code 0.

    Examples:
      cleats serve code
      cleats serve code --repo ~/src/app
      cleats serve skills --skill-dir ./skills --no-plugins
      cleats serve assets --wire rpc
      cleats serve code --wire legacy
      cleats serve --tools find_code,skill --read-only
    """
    early_signals.end_on_signals()
    wire = wire or {"sdk": "mcp"}.get(settings.transport, settings.transport)
    if settings.code.auto_index == "auto":
        settings = replace(settings, code=replace(settings.code, auto_index="on"))
    with _start_server(settings, toolsets, repo, tools=tools, read_only=read_only, expects_client=True) as server:
        from cleats import app  # noqa: PLC0415

        if wire == "rpc":
            import asyncio  # noqa: PLC0415 - anyio's own start would double the start-up

            asyncio.run(app.serve_rpc(*server))
            return
        if wire == "legacy":
            click.echo(LEGACY_WIRE_WARNING, err=True)
        app.run_server(app.serve_legacy if wire == "legacy" else app.serve_stdio, *server)


@click.command()
@_toolsets_argument
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=_PORT_RANGE, default=DEFAULT_PORT, show_default=True, help=_PORT_HELP)
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help=_WORKERS_HELP)
@_repo_option
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON on stdout.")
@skill_options
def http(  # noqa: PLR0917 - click passes them by name
    settings: Settings,
    toolsets: tuple[str, ...],
    host: str,
    port: int,
    workers: int,
    repo: Path | None,
    *,
    as_json: bool,
) -> None:
    """Serve TOOLSETS (all of them by default) over HTTP: a console for people, REST, event streams, and MCP at /mcp.

    Open the address in a browser to search, review runs and findings, and call tools. /docs describes every route and
    tool; /openapi.json is for programs. If CLEATS_HTTP_TOKEN is set, every request must send the token, and the
    console asks for it; otherwise the server listens only on this machine. On SIGINT or SIGTERM the server answers the
    calls in progress and exits with code 0.

    Examples:
      cleats http
      cleats http code --port 0 --json
      cleats http --workers 4
      CLEATS_HTTP_TOKEN=… cleats http --host 0.0.0.0
    """
    early_signals.end_on_signals()
    _check_bind(settings, host)
    if workers > 1 and sys.platform != "linux":
        raise click.UsageError("--workers needs Linux; start one server here.")
    with (
        _start_server(settings, toolsets, repo) as (server_settings, served, status, (_, out)),
        _bind_socket(host, port) as listener,
    ):
        from cleats import app  # noqa: PLC0415

        announce_ready = partial(_announce_address, out if as_json else None, listener, server_settings)
        if workers == 1:
            app.run_server(app.serve_http, server_settings, served, status, listener, announce_ready)
            return
        from cleats.transports.http.workers.group import GroupEnd, run_workers  # noqa: PLC0415 - not on Windows

        result = run_workers(server_settings, served, listener, workers, announce_ready)
        if isinstance(result, GroupEnd):
            click.get_current_context().exit(result.exit_code)
        app.run_server(app.serve_http, server_settings, served, status, result)


def _check_bind(settings: Settings, host: str) -> None:
    from cleats.transports.http.tokens import is_local_host  # noqa: PLC0415

    if not settings.http.token and not settings.http.tokens and not is_local_host(host):
        raise SettingError(
            f"--host {host} can be reached from other machines: "
            "require a token with CLEATS_HTTP_TOKEN or CLEATS_HTTP_TOKENS"
        )


def _bind_socket(host: str, port: int) -> "socket.socket":
    from cleats.transports.http.service import bind_socket  # noqa: PLC0415

    try:
        return bind_socket(host, port)
    except OSError as error:
        # The text of the error repeats the address, in Python's notation.
        reason = (
            "the port is in use; --port 0 selects a free one" if error.errno == errno.EADDRINUSE else error.strerror
        )
        raise SettingError(f"cannot listen on {host} port {port}: {reason}") from None


def _announce_address(out: int | None, listener: "socket.socket", settings: Settings) -> None:
    """Announce the address of the server: to a program as JSON on stdout, or to a person."""
    from cleats.transports.http.service import base_url  # noqa: PLC0415

    host, port = listener.getsockname()[:2]
    url = base_url(listener)
    if out is None:
        needs_token = settings.http.token or settings.http.tokens
        note = "; the console and callers need a token" if needs_token else ""
        click.echo(f"Listening on {url}; open it in a browser{note}. Ctrl-C stops it.", err=True)
        return
    line = {"ok": True, "host": host, "port": port, "repo": str(settings.project_dir), "baseUrl": url}
    os.write(out, json.dumps(line, separators=(",", ":")).encode() + b"\n")


@click.command()
@click.option("--concurrency", type=click.IntRange(0, 64), default=2, show_default=True, help=_CONCURRENCY_HELP)
@click.option("--repo", type=_folder_type, help="Build, publish and update the index of this repository.")
@click.pass_obj
def worker(settings: Settings, /, concurrency: int, repo: Path | None) -> None:
    """Run a fleet worker until SIGINT or SIGTERM.

    With CLEATS_DATABASE_URL, the worker executes queued launch runs and takes over runs whose worker has died. All
    workers and servers need the same CLEATS_LAUNCH_RUNS_DIR on shared storage.

    With --repo, the worker builds the index of a repository, publishes it to CLEATS_INDEX_URL or
    CLEATS_OPENSEARCH_URL, and repeats this when files change. Servers with the same URL and CLEATS_INDEX_NAME
    search this index.

    Examples:
      cleats worker --concurrency 4       with CLEATS_DATABASE_URL=postgresql://db/cleats
      cleats worker --repo ~/src/project  with CLEATS_INDEX_URL=/shared/indexes
    """
    if repo is not None:
        if not (settings.code.index_url or settings.code.opensearch_url):
            raise SettingError(
                "index_url is not set: set CLEATS_INDEX_URL or CLEATS_OPENSEARCH_URL to publish the index"
            )
        settings = replace_settings(settings, project_dir=repo.absolute(), index_share="publish")
    if not (settings.database_url and concurrency) and repo is None:
        raise SettingError(
            "database_url is not set: set CLEATS_DATABASE_URL to the database of the runs, or give --repo"
        )
    from cleats import app  # noqa: PLC0415
    from cleats.runtime.background_writer import log_to_stderr  # noqa: PLC0415

    log_to_stderr(settings.log_level)
    app.run_server(app.run_worker, settings, concurrency, repo is not None)


@click.group()
def token() -> None:
    """Manage the tokens of the HTTP API; CLEATS_HTTP_TOKENS names the file with their hashes.

    Examples:
      cleats token new ci --toolset code --per-minute 120
    """


@token.command()
@click.argument("name")
@click.option("--toolset", "toolsets", multiple=True, help="Allow this toolset; repeatable. [default: all]")
@click.option("--repository", "repositories", multiple=True, type=_folder_type, help=_REPOSITORY_HELP)
@click.option("--per-minute", type=click.FloatRange(0, min_open=True), help="Maximum number of requests per minute.")
@click.option("--burst", type=click.IntRange(1), help="Maximum number of requests at once.")
@click.option("--json", "as_json", is_flag=True, help="Print {token, entry}.")
def new(
    name: str,
    toolsets: tuple[str, ...],
    repositories: tuple[Path, ...],
    per_minute: float | None,
    burst: int | None,
    *,
    as_json: bool,
) -> None:
    """Create a token for NAME and print it and its file entry.

    The token is shown only once; the entry contains only its hash. Servers read the file at start-up. To
    revoke a token, remove its entry and restart the servers.

    Examples:
      cleats token new ci --toolset code --repository /srv/repos --per-minute 120
    """
    from cleats.transports.http.tokens import AccessToken, format_entry, generate_token, hash_token, is_token_name  # noqa: PLC0415

    if not is_token_name(name):
        raise click.UsageError("NAME may have up to 64 characters: letters, digits and _ . @ -")
    secret = generate_token()
    folders = tuple(folder.resolve() for folder in repositories) or None
    limits: dict[str, Any] = {"per_minute": per_minute, "burst": burst}
    limits |= {"toolsets": toolsets or None, "repositories": folders}
    entry_text = format_entry(AccessToken(name=name, sha256=hash_token(secret), **limits))
    if as_json:
        click.echo(json.dumps({"token": secret, "entry": entry_text}))
        return
    notice = "# The token is shown only once. Add this to the file of tokens:"
    click.echo(f"{secret}\n\n{notice}\n{entry_text}", nl=False)


def _select_tools(toolsets: "Sequence[Toolset]", names: Collection[str], *, read_only: bool) -> "list[Toolset]":
    """Return toolsets with only the named tools, or all of them; with `read_only`, only those that change nothing.

    Raises:
        SettingError: A name is unknown, or no tool is left.
    """
    known_names = {tool.name for toolset in toolsets for tool in toolset.tools}
    if unknown := sorted(set(names) - known_names):
        raise SettingError(f"unknown tools: {', '.join(unknown)}; the toolsets have: {', '.join(sorted(known_names))}")
    selected = [
        dataclasses.replace(
            toolset,
            tools=tuple(
                tool
                for tool in toolset.tools
                if (not names or tool.name in names) and (not read_only or tool.hints.read_only)
            ),
        )
        for toolset in toolsets
    ]
    served = [toolset for toolset in selected if toolset.tools]
    if not served:
        raise SettingError("no tool is left to serve")
    return served
