"""Runs that are driven or watched from a terminal, with a view of what happens."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import time
from typing import TYPE_CHECKING, Any, Final

import click

from cleats.cli.launch_calls import DECIDE, Desk, Stopped
from cleats.cli.launch_view import ENDS, picture, summary, told
from cleats.cli.printing import asked_for_json, echo_json

if TYPE_CHECKING:
    from rich.live import Live

    from cleats.toolsets.launch.store.port import Run

LOOK: Final = 0.2
"""Seconds between two looks at the store."""


def exit_code(state: str) -> int:
    """What a command leaves with when a run is here."""
    if state in ("FAILED", "CANCELLED"):
        return 1
    return DECIDE if state == "VALIDATING" else 0


@dataclass
class View:
    """What is shown of a run while it moves."""

    desk: Desk
    run_id: str
    live: "Live | None" = None
    lines: Any = None
    """Where lines go when there is no picture: stdout, stderr, or nowhere."""
    seen: int = 0
    gates: dict[str, bool] = field(default_factory=dict)
    saying: str = ""

    async def look(self) -> "Run":
        """Read what is new and show it."""
        from anyio import to_thread  # noqa: PLC0415 - help needs none of these

        store = self.desk.launches.engine.store
        run = await to_thread.run_sync(store.get, self.run_id)
        if run.tail.length != self.seen:
            first = self.seen
            events = await to_thread.run_sync(store.events, self.run_id, first)
            events = events[self.seen - first :]  # another look may have told some meanwhile
            self.seen += len(events)  # there may be more by now than the run knew of
            for event in events:
                if event.type == "GATE_RUN_FINISHED":
                    self.gates[event.payload["gate"]] = event.payload["ok"]
                if event.type == "WORK_ITEM_STARTED":
                    self.saying = ""
                self._print(event)
        if self.live is not None:
            self.live.update(picture(run, self.gates, self.saying))
        return run

    async def show(self, report: Any) -> None:
        """Take up what the worker says."""
        self.saying = report.message

    def _print(self, event: Any) -> None:
        if self.lines is None:
            return
        if asked_for_json():
            click.echo(json.dumps(event.as_json(), ensure_ascii=False), file=self.lines)
        elif line := told(event):
            click.echo(line, file=self.lines)


@asynccontextmanager
async def viewing(desk: Desk, run_id: str, *, lines: Any, old: bool = True) -> AsyncIterator[View]:
    """Show a run while the block runs: a picture in a terminal, lines where they are wanted.

    Lines are about what was there before only with `old`.
    """
    import asyncio  # noqa: PLC0415 - help needs none of these

    view = View(desk, run_id, lines=lines)
    if sys.stderr.isatty() and not asked_for_json():
        from rich.console import Console  # noqa: PLC0415 - only in a terminal
        from rich.live import Live  # noqa: PLC0415

        view.lines = None
        view.live = Live(console=Console(stderr=True), refresh_per_second=8, transient=True)
        view.live.start()

    async def follow() -> None:
        while True:
            await view.look()
            await asyncio.sleep(LOOK)

    if not old:
        kept, view.lines = view.lines, None
        await view.look()
        view.lines = kept
    following = asyncio.create_task(follow())
    try:
        yield view
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await view.look()
        if view.live is not None:
            view.live.stop()


async def moved(desk: Desk, tool: str, run_id: str) -> dict[str, Any]:
    """Call a tool that moves a run, with a view of what is new; its answer."""
    answer = await desk.call("get_status", run_id=run_id)
    if not answer["ok"]:
        return answer
    lines = None if asked_for_json() else sys.stderr
    async with viewing(desk, run_id, lines=lines, old=False) as view:
        return await desk.call(tool, view, run_id=run_id)


async def watched(desk: Desk, run_id: str) -> dict[str, Any]:
    """Follow a run until it ends or rests, whoever drives it; its status."""
    import anyio  # noqa: PLC0415 - help needs none of these

    answer = await desk.call("get_status", run_id=run_id)
    if not answer["ok"]:
        return answer
    async with viewing(desk, run_id, lines=sys.stdout) as view:
        while not _rests(await view.look()):
            with anyio.move_on_after(LOOK):
                await desk.stop.asked.wait()
                raise Stopped(run_id)
    return await desk.call("get_status", run_id=run_id)


def _rests(run: "Run") -> bool:
    """Whether nobody works on a run."""
    return run.snapshot["run_state"] in ENDS or not run.owner or run.expires <= time()


async def looked_at(desk: Desk, run_id: str) -> tuple[dict[str, Any], bool]:
    """The status of a run, and whether somebody works on it."""
    from anyio import to_thread  # noqa: PLC0415 - help needs none of these

    answer = await desk.call("get_status", run_id=run_id)
    if not answer["ok"]:
        return answer, False
    return answer, not _rests(await to_thread.run_sync(desk.launches.engine.store.get, run_id))


def show(answer: dict[str, Any], *, driven: bool = False) -> None:
    """Print the status of a run and leave with what it means."""
    if asked_for_json():
        echo_json(answer)
    else:
        click.echo("\n".join(summary(answer["status"], driven=driven)))
    sys.exit(exit_code(answer["status"]["state"]))
