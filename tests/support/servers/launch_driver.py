"""A process that drives runs to their end and is killed by a test on the way.

    python -m tests.support.servers.launch_driver HOME RUN... [--inline] [--halt STATE] [--seed N]

It does what a client would: resume, fix, open the request. With `--halt` it stops forever right
after the record that enters a state, after creating the file HOME/halted. The file HOME/owner.PID
has the prefix of the owner of its leases.
"""

import argparse
import os
import random
import threading
from collections.abc import Sequence
from pathlib import Path

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drive.engine import RunEngine
from cleats.toolsets.launch.drive.leases import LeaseTiming
from cleats.toolsets.launch.runs.events import RunEvent
from cleats.toolsets.launch.runs.states import TERMINAL_STATES, RunState
from cleats.toolsets.launch.store.model import Run
from tests.support.launch_runs import create_engine


def main() -> None:
    """Drive all runs named on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--inline", action="store_true")
    parser.add_argument("--halt", default="")
    parser.add_argument("--lease", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    def halt_at_state(_run: Run, events: Sequence[RunEvent]) -> None:
        for event in events:
            if event.type == "RUN_STATE_CHANGED" and event.payload["new_state"] == options.halt:
                (options.home / "halted").touch()
                threading.Event().wait()

    pace = LeaseTiming(
        lease_seconds=options.lease, renew_seconds=options.lease / 4, check_seconds=0.05, retry_seconds=0.01
    )
    random.Random(options.seed).shuffle(options.runs)
    run_engine = create_engine(options.home, inline=options.inline, pace=pace, observe=halt_at_state)
    (options.home / f"owner.{os.getpid()}").write_text(run_engine._leases._owner)
    anyio.run(drive_all, run_engine, options.runs)


async def drive_all(run_engine: RunEngine, names: Sequence[str]) -> None:
    """Drive the runs in turn until every run has ended."""
    while any(run_engine.store.get(name).state not in TERMINAL_STATES for name in names):
        for name in names:
            if run_engine.store.get(name).state not in TERMINAL_STATES:
                await drive_once(run_engine, name)


async def drive_once(run_engine: RunEngine, name: str) -> None:
    """Take a run one call further, regardless of what another driver does meanwhile."""
    try:
        match RunState((await run_engine.resume(name))["state"]):
            case RunState.VALIDATING:
                await run_engine.fix_next(name)
            case RunState.READY_FOR_PR:
                await run_engine.open_pr(name)
    except ToolError as error:
        if error.code not in {ErrorCode.ILLEGAL_STATE, ErrorCode.CANCELLED}:
            raise


if __name__ == "__main__":
    main()
