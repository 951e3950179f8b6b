"""`cleats launch clean`: give back the disk that ended runs take."""

import sys
from typing import TYPE_CHECKING, Any

import click

from cleats.cli.launch_calls import Desk, fail, run
from cleats.cli.printing import columns, echo_json, size
from cleats.settings import Settings

if TYPE_CHECKING:
    from cleats.toolsets.launch.cleaning import Freed


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

    found = run(settings, lambda desk: _cleaned(desk, run_ids, days or 0, dry_run=dry_run))
    if isinstance(found, dict):
        fail(found)
    gone = [each for each in found if not each.problem]
    left = [each for each in found if each.problem]
    freed = sum(each.size for each in gone)
    if as_json:
        echo_json(
            {
                "ok": not left,
                "dry_run": dry_run,
                "freed_bytes": freed,
                "removed": [_shown(each) for each in gone],
                "kept": [_shown(each) | {"problem": each.problem} for each in left],
            }
        )
    else:
        if gone:
            click.echo(columns([(size(each.size), each.state.value, each.run_id) for each in gone]))
        click.echo(f"{size(freed)} would be freed." if dry_run else f"{size(freed)} freed.")
        for each in left:
            click.echo(f"  {each.run_id} stays: {each.problem}.", err=True)
    sys.exit(1 if left else 0)


async def _cleaned(
    desk: Desk, run_ids: tuple[str, ...], days: float, *, dry_run: bool
) -> "list[Freed] | dict[str, Any]":
    """What was removed, or the payload of a failure."""
    from anyio import to_thread  # noqa: PLC0415 - help needs none of these

    from cleats.contract.errors import ToolError  # noqa: PLC0415
    from cleats.contract.outcome import Failed  # noqa: PLC0415
    from cleats.contract.payload import LAUNCH, Meta  # noqa: PLC0415
    from cleats.toolsets.launch import cleaning  # noqa: PLC0415

    def work() -> "list[Freed]":
        engine = desk.launches.engine
        return cleaning.clean(engine.store, engine.runs, run_ids, days=days, dry_run=dry_run)

    try:
        return await to_thread.run_sync(work)
    except ToolError as error:
        return LAUNCH.seal(Failed(error), Meta()).body or {}


def _shown(each: "Freed") -> dict[str, object]:
    return {"run_id": each.run_id, "state": each.state.value, "bytes": each.size}
