"""The `cleats serve` command."""

import gc
import os
import sys
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from cleats.cli import completion
from cleats.cli.skill_options import apply_skill_options, skill_options
from cleats.runtime import early_signals
from cleats.settings import Settings

LEGACY_WIRE_WARNING = (
    "Deprecated: the legacy wire has no new features and goes in a later release; `cleats serve` without it speaks MCP."
)


@click.command()
@click.argument("toolsets", nargs=-1, shell_complete=completion.complete_toolsets)
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
    early_signals.handle_signals(sys.exit)
    from cleats.transports.stdio import claim_stdio  # noqa: PLC0415

    settings = apply_skill_options(settings, **options)
    if repo is not None:
        settings = replace(settings, project_dir=repo.absolute())
    wire = wire or {"sdk": "mcp"}.get(settings.transport, settings.transport)
    with claim_stdio() as descriptors:
        gc.disable()  # until the app has imported and built everything
        from cleats import app  # noqa: PLC0415
        from cleats.runtime.background_writer import PROCESS_JOURNAL, log_to_stderr  # noqa: PLC0415
        from cleats.runtime.server_status import ServerStatus  # noqa: PLC0415

        for name in app.find_unknown_toolsets(toolsets):
            toolset_names = ", ".join(app.list_toolset_names())
            raise click.UsageError(f"there is no toolset {name!r}; there are: {toolset_names}")
        log_to_stderr(settings.log_level)
        if os.isatty(descriptors[0]):
            click.echo("Waiting for a client on stdin; `cleats client-config` says how.", err=True)
        server_status = ServerStatus()
        served = app.load_toolsets(settings, toolsets, server_status)
        try:
            if wire == "rpc":
                import asyncio  # noqa: PLC0415 - anyio's own start would double the start-up

                asyncio.run(app.serve_rpc(settings, served, server_status, descriptors))
            elif wire == "legacy":
                click.echo(LEGACY_WIRE_WARNING, err=True)
                app.run_server(app.serve_legacy, settings, served, server_status, descriptors)
            else:
                app.run_server(app.serve_stdio, settings, served, server_status, descriptors)
        finally:
            PROCESS_JOURNAL.close()
