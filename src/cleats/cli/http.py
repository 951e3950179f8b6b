"""`cleats http`."""

import errno
import gc
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from cleats.cli import completing
from cleats.cli.skill_options import applied, skill_options
from cleats.runtime import starting
from cleats.settings import SettingError, Settings

if TYPE_CHECKING:
    import socket

PORT = 7345


@click.command()
@click.argument("toolsets", nargs=-1, shell_complete=completing.toolsets)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
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
    starting.on_signals(sys.exit)
    from cleats.transports.stdio import claimed  # noqa: PLC0415

    settings = applied(settings, **options)
    if repo is not None:
        settings = replace(settings, project_dir=repo.absolute())
    _check_bind(settings, host)
    with claimed() as (_, out):
        gc.disable()  # until the app has imported and built everything
        from cleats import app  # noqa: PLC0415
        from cleats.runtime.journal import JOURNAL, log_to_stderr  # noqa: PLC0415
        from cleats.runtime.vitals import Vitals  # noqa: PLC0415

        for name in app.unknown(toolsets):
            known = ", ".join(app.names())
            raise click.UsageError(f"there is no toolset {name!r}; there are: {known}")
        log_to_stderr(settings.log_level)
        vitals = Vitals()
        served = app.toolsets(settings, toolsets, vitals)
        with _bound(host, port) as listener:

            def ready() -> None:
                _announce(out if as_json else None, listener, settings)

            try:
                app.run(app.serve_http, settings, served, vitals, listener, ready)
            finally:
                JOURNAL.close()


def _check_bind(settings: Settings, host: str) -> None:
    from cleats.transports.http.policy import is_local  # noqa: PLC0415

    if not settings.http_token and not settings.http_tokens and not is_local(host):
        raise SettingError(
            f"--host {host} can be reached from other machines: "
            "set CLEATS_HTTP_TOKEN, which callers then must send, or CLEATS_HTTP_TOKENS"
        )


def _bound(host: str, port: int) -> "socket.socket":
    from cleats.transports.http.listening import bind  # noqa: PLC0415

    try:
        return bind(host, port)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        # Its own words name the address once more, in Python's notation.
        why = "it is in use; --port 0 takes a free one" if taken else error.strerror
        raise SettingError(f"cannot listen on {host} port {port}: {why}") from None


def _announce(out: int | None, listener: "socket.socket", settings: Settings) -> None:
    """Say where it listens: to a program on its stdout, or to a person."""
    import os  # noqa: PLC0415

    from cleats.transports.http.listening import base_url  # noqa: PLC0415

    host, port = listener.getsockname()[:2]
    url = base_url(listener)
    if out is None:
        # A browser cannot send a token, so it would be led to a refusal.
        guarded = settings.http_token or settings.http_tokens
        more = "callers need a token" if guarded else f"{url}/docs says what is there"
        click.echo(f"Listening on {url}; {more}. Ctrl-C stops it.", err=True)
        return
    line = {
        "ok": True,
        "host": host,
        "port": port,
        "repo": str(settings.project_dir),
        "baseUrl": url,
    }
    os.write(out, json.dumps(line, separators=(",", ":")).encode() + b"\n")
