"""The `cleats http` command."""

import errno
import gc
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from cleats.cli import completion
from cleats.cli.skill_options import apply_skill_options, skill_options
from cleats.runtime import early_signals
from cleats.settings import SettingError, Settings

if TYPE_CHECKING:
    import socket

DEFAULT_PORT = 7345


@click.command()
@click.argument("toolsets", nargs=-1, shell_complete=completion.complete_toolsets)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Where to listen; 0 for any free port.",
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The repository that calls are about which name none; this folder by default.",
)
@click.option("--json", "as_json", is_flag=True, help="Say on stdout, in JSON, where it listens.")
@skill_options
@click.pass_obj
def http(
    settings: Settings,
    /,
    toolsets: tuple[str, ...],
    host: str,
    port: int,
    repo: Path | None,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    """Serve TOOLSETS (all of them by default) over HTTP: REST, event streams, and MCP at /mcp.

    /docs is a page about every route and tool, /openapi.json the same for programs. With
    CLEATS_HTTP_TOKEN set, every request must bring the token; without it the server listens on
    this machine only. The server ends with exit code 0 on SIGINT or SIGTERM, after answering what
    is in flight.

    \b
    Examples:
      cleats http
      cleats http code --port 0 --json
      CLEATS_HTTP_TOKEN=… cleats http --host 0.0.0.0
    """  # noqa: D301 - click reads the backspace
    early_signals.handle_signals(sys.exit)
    from cleats.transports.stdio import claim_stdio  # noqa: PLC0415

    settings = apply_skill_options(settings, **options)
    if repo is not None:
        settings = replace(settings, project_dir=repo.absolute())
    _check_bind(settings, host)
    with claim_stdio() as (_, out):
        gc.disable()  # until the app has imported and built everything
        from cleats import app  # noqa: PLC0415
        from cleats.runtime.background_writer import PROCESS_JOURNAL, log_to_stderr  # noqa: PLC0415
        from cleats.runtime.server_status import ServerStatus  # noqa: PLC0415

        for name in app.find_unknown_toolsets(toolsets):
            toolset_names = ", ".join(app.list_toolset_names())
            raise click.UsageError(f"there is no toolset {name!r}; there are: {toolset_names}")
        log_to_stderr(settings.log_level)
        server_status = ServerStatus()
        served = app.load_toolsets(settings, toolsets, server_status)
        with _bind_socket(host, port) as listener:

            def announce_ready() -> None:
                _announce_address(out if as_json else None, listener, settings)

            try:
                app.run_server(app.serve_http, settings, served, server_status, listener, announce_ready)
            finally:
                PROCESS_JOURNAL.close()


def _check_bind(settings: Settings, host: str) -> None:
    from cleats.transports.http.policy import is_local_host  # noqa: PLC0415

    if not settings.http_token and not settings.http_tokens and not is_local_host(host):
        raise SettingError(
            f"--host {host} can be reached from other machines: "
            "set CLEATS_HTTP_TOKEN, which callers then must send, or CLEATS_HTTP_TOKENS"
        )


def _bind_socket(host: str, port: int) -> "socket.socket":
    from cleats.transports.http.server import bind_socket  # noqa: PLC0415

    try:
        return bind_socket(host, port)
    except OSError as error:
        is_in_use = error.errno == errno.EADDRINUSE
        # The text of the error repeats the address, in Python's notation.
        reason = "it is in use; --port 0 takes a free one" if is_in_use else error.strerror
        raise SettingError(f"cannot listen on {host} port {port}: {reason}") from None


def _announce_address(out: int | None, listener: "socket.socket", settings: Settings) -> None:
    """Announce the address of the server: to a program as JSON on stdout, or to a person."""
    import os  # noqa: PLC0415

    from cleats.transports.http.server import base_url  # noqa: PLC0415

    host, port = listener.getsockname()[:2]
    url = base_url(listener)
    if out is None:
        # A browser cannot send a token, so /docs would be refused.
        needs_token = settings.http_token or settings.http_tokens
        note = "callers need a token" if needs_token else f"{url}/docs says what is there"
        click.echo(f"Listening on {url}; {note}. Ctrl-C stops it.", err=True)
        return
    line = {
        "ok": True,
        "host": host,
        "port": port,
        "repo": str(settings.project_dir),
        "baseUrl": url,
    }
    os.write(out, json.dumps(line, separators=(",", ":")).encode() + b"\n")
