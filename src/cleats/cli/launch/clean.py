"""The `cleats launch clean` command: free the disk space of runs that have ended."""

import sys
from typing import TYPE_CHECKING, Any

import click

from cleats.cli.launch.calls import LaunchClient, exit_with_failure, run_with_client
from cleats.cli.output import echo_json, format_bytes, format_columns
from cleats.settings import Settings

if TYPE_CHECKING:
    from cleats.toolsets.launch.store.run_files import CleanedRun


@click.command()
@click.argument("run_ids", nargs=-1, metavar="[RUN_ID]...")
@click.option("--days", type=click.FloatRange(0), help="Only runs that ended so many days ago.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.pass_obj
def clean(
    settings: Settings,
    run_ids: tuple[str, ...],
    *,
    days: float | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove the checkouts of runs that have ended.

    Of all such runs, or of those that are named. Status, log and artifacts stay. A run that
    waits keeps its checkouts; `cleats launch cancel` ends it.

    \b
    Examples:
      cleats launch clean --dry-run
      cleats launch clean --days 30
      cleats launch clean RUN_ID
    """  # noqa: D301 - click reads the backspace
    if run_ids and days is not None:
        raise click.UsageError("--days chooses among all runs; leave it out, or the ids.")

    result = run_with_client(settings, lambda client: _clean_runs(client, run_ids, days or 0, dry_run=dry_run))
    if isinstance(result, dict):
        exit_with_failure(result)
    removed = [item for item in result if not item.problem]
    remaining = [item for item in result if item.problem]
    freed_bytes = sum(item.size for item in removed)
    if as_json:
        echo_json(
            {
                "ok": not remaining,
                "dry_run": dry_run,
                "freed_bytes": freed_bytes,
                "removed": [_freed_as_json(item) for item in removed],
                "kept": [_freed_as_json(item) | {"problem": item.problem} for item in remaining],
            }
        )
    else:
        if removed:
            click.echo(format_columns([(format_bytes(item.size), item.state.value, item.run_id) for item in removed]))
        click.echo(f"{format_bytes(freed_bytes)} would be freed." if dry_run else f"{format_bytes(freed_bytes)} freed.")
        for item in remaining:
            click.echo(f"  {item.run_id} stays: {item.problem}.", err=True)
    sys.exit(1 if remaining else 0)


async def _clean_runs(
    client: LaunchClient, run_ids: tuple[str, ...], days: float, *, dry_run: bool
) -> "list[CleanedRun] | dict[str, Any]":
    """Remove the checkouts of runs and return the results, or the payload of a failure."""
    from anyio import to_thread  # noqa: PLC0415 - help needs none of these

    from cleats.contract.errors import ToolError  # noqa: PLC0415
    from cleats.contract.outcome import Failed  # noqa: PLC0415
    from cleats.contract.payload import LAUNCH, AnswerMeta  # noqa: PLC0415
    from cleats.toolsets.launch.store import run_files  # noqa: PLC0415

    def remove_checkouts() -> "list[CleanedRun]":
        engine = client.launches.engine
        return run_files.clean_runs(engine.store, engine.runs, run_ids, days=days, dry_run=dry_run)

    try:
        return await to_thread.run_sync(remove_checkouts)
    except ToolError as error:
        return LAUNCH.render_outcome(Failed(error), AnswerMeta()).body or {}


def _freed_as_json(item: "CleanedRun") -> dict[str, object]:
    return {"run_id": item.run_id, "state": item.state.value, "bytes": item.size}
