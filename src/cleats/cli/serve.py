"""`cleats serve`."""

import gc
import os
import sys
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from cleats.cli import completing
from cleats.cli.skill_options import applied, skill_options
from cleats.runtime import starting
from cleats.settings import Settings

DEPRECATION = (
    "Deprecated: the legacy wire has no new features and goes in a later release; "
    "`cleats serve` without it speaks MCP."
)


@click.command()
@click.argument("toolsets", nargs=-1, shell_complete=completing.toolsets)
@click.option(
    "--wire",
    type=click.Choice(["mcp", "rpc", "legacy"]),
    help="MCP (the default); plain JSON-RPC lines whose method is the tool; or the deprecated "
    "Content-Length frames of clients that know nothing newer.",
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The repository that calls are about which name none; this folder by default.",
)
@skill_options
@click.pass_obj
def serve(
    settings: Settings,
    /,
    toolsets: tuple[str, ...],
    wire: str | None,
    repo: Path | None,
    **options: Any,
) -> None:
    """Serve TOOLSETS (all of them by default) to one agent over stdin and stdout.

    The agent starts this command itself; `cleats client-config` prints the block that tells it to.
    Frames go to stdout, one log line a call to stderr. The server ends with exit code 0 when its
    input ends or on SIGINT or SIGTERM, after answering what is in flight.

    \b
    Examples:
      cleats serve code
      cleats serve code --repo ~/src/app
      cleats serve skills --skill-dir ./skills --no-plugins
      cleats serve assets --wire rpc
      cleats serve code --wire legacy
    """  # noqa: D301 - click reads the backspace
    starting.on_signals(sys.exit)
    from cleats.transports.stdio import claimed  # noqa: PLC0415

    settings = applied(settings, **options)
    if repo is not None:
        settings = replace(settings, project_dir=repo.absolute())
    wire = wire or {"sdk": "mcp"}.get(settings.transport, settings.transport)
    with claimed() as descriptors:
        gc.disable()  # until the app has imported and built everything
        from cleats import app  # noqa: PLC0415
        from cleats.runtime.journal import JOURNAL, log_to_stderr  # noqa: PLC0415
        from cleats.runtime.vitals import Vitals  # noqa: PLC0415

        for name in app.unknown(toolsets):
            known = ", ".join(app.names())
            raise click.UsageError(f"there is no toolset {name!r}; there are: {known}")
        log_to_stderr(settings.log_level)
        if os.isatty(descriptors[0]):
            click.echo("Waiting for a client on stdin; `cleats client-config` says how.", err=True)
        vitals = Vitals()
        served = app.toolsets(settings, toolsets, vitals)
        try:
            if wire == "rpc":
                import asyncio  # noqa: PLC0415 - anyio's own start would double the start-up

                asyncio.run(app.serve_rpc(settings, served, vitals, descriptors))
            elif wire == "legacy":
                click.echo(DEPRECATION, err=True)
                app.run(app.serve_legacy, settings, served, vitals, descriptors)
            else:
                app.run(app.serve_stdio, settings, served, vitals, descriptors)
        finally:
            JOURNAL.close()
