"""A process that drives runs to their end, to be killed on the way.

    python -m tests.servers.launch_driver HOME RUN... [--inline] [--halt STATE] [--seed N]

It does what a client would: resume, fix, open the request. With `--halt` it stops for ever right
after the record that enters a state, when it has made the file HOME/halted. The file HOME/owner.PID
says what the owner of its leases begins with.
"""

import argparse
import os
import random
import threading
from collections.abc import Sequence
from pathlib import Path

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drive.driver import Engine
from cleats.toolsets.launch.drive.leases import Pace
from cleats.toolsets.launch.events import Event
from cleats.toolsets.launch.states import TERMINAL, State
from cleats.toolsets.launch.store.port import Run
from tests.launch_world import engine


def main() -> None:
    """Drive all runs that are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--inline", action="store_true")
    parser.add_argument("--halt", default="")
    parser.add_argument("--lease", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()

    def observe(_run: Run, events: Sequence[Event]) -> None:
        for event in events:
            if event.type == "RUN_STATE_CHANGED" and event.payload["new_state"] == told.halt:
                (told.home / "halted").touch()
                threading.Event().wait()

    pace = Pace(lease=told.lease, renew=told.lease / 4, look=0.05, wait=0.01)
    random.Random(told.seed).shuffle(told.runs)
    runs = engine(told.home, inline=told.inline, pace=pace, observe=observe)
    (told.home / f"owner.{os.getpid()}").write_text(runs._leases._owner)
    anyio.run(drive_all, runs, told.runs)


async def drive_all(runs: Engine, names: Sequence[str]) -> None:
    """Go round until every run has ended."""
    while any(runs.store.get(name).state not in TERMINAL for name in names):
        for name in names:
            if runs.store.get(name).state not in TERMINAL:
                await drive(runs, name)


async def drive(runs: Engine, name: str) -> None:
    """Take a run one call further, whatever the other driver does meanwhile."""
    try:
        match State((await runs.resume(name))["state"]):
            case State.VALIDATING:
                await runs.fix_next(name)
            case State.READY_FOR_PR:
                await runs.open_pr(name)
    except ToolError as error:
        if error.code not in {ErrorCode.ILLEGAL_STATE, ErrorCode.CANCELLED}:
            raise


if __name__ == "__main__":
    main()
