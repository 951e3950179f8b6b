"""The disk that ended runs still take: their checkouts go, their records and artifacts stay.

A checkout is renamed while nobody else can drive its run, and removed afterwards. So whoever looks
finds all of it or nothing, and what a killed clean-up has left is found by the next one.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.folder import RunFolder
from cleats.toolsets.launch.states import TERMINAL, State
from cleats.toolsets.launch.store.port import Listed, RunStore

_PAGE: Final = 200
_MOMENT: Final = 10.0
"""Seconds that the right to a run is asked for; renaming a folder takes none."""


@dataclass(frozen=True, slots=True)
class Freed:
    """What one run took; `problem` says why it still does."""

    run_id: str
    state: State
    size: int
    problem: str = ""


def clean(
    store: RunStore, runs: Path, wanted: Sequence[str] = (), *, days: float = 0, dry_run: bool
) -> list[Freed]:
    """Remove the checkouts of ended runs: of those that are `wanted`, or of all.

    Without `wanted`, only those that ended `days` ago or earlier.

    Raises:
        ToolError: RUN_NOT_FOUND; ILLEGAL_STATE, a run that is wanted has not ended.
    """
    chosen = [_ended(store, each) for each in wanted] if wanted else [*_before(store, days)]
    found = [(run_id, state, RunFolder(runs / run_id)) for run_id, state in chosen]
    return [
        _freed(store, run_id, state, folder, dry_run=dry_run)
        for run_id, state, folder in found
        if folder.checkouts.exists() or folder.leftovers
    ]


def _ended(store: RunStore, run_id: str) -> tuple[str, State]:
    state = store.get(run_id).state
    if state not in TERMINAL:
        raise ToolError(
            ErrorCode.ILLEGAL_STATE,
            f"{run_id} has not ended: it is {state}",
            hint="launch_cancel ends it.",
            details={"state": state.value, "allowed": sorted(TERMINAL)},
        )
    return run_id, state


def _before(store: RunStore, days: float) -> Iterator[tuple[str, State]]:
    last = datetime.now(UTC) - timedelta(days=days)
    for state in sorted(TERMINAL):
        before = 0
        while page := store.list(state=state, limit=_PAGE, before=before):
            for each in page:
                if not days or _moment(each) <= last:
                    yield each.run_id, each.state
            before = page[-1].number


def _moment(run: Listed) -> datetime:
    return datetime.fromisoformat(run.finished_at or run.started_at)


def _freed(
    store: RunStore, run_id: str, state: State, folder: RunFolder, *, dry_run: bool
) -> Freed:
    size = sum(_size(each) for each in (folder.checkouts, *folder.leftovers))
    problem = ""
    try:
        if not dry_run and not _taken_aside(store, run_id, folder):
            problem = "somebody works with it"
        for each in () if dry_run else folder.leftovers:
            _remove(each)
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else type(error).__name__
    return Freed(run_id, state, size, problem)


def _taken_aside(store: RunStore, run_id: str, folder: RunFolder) -> bool:
    """Rename the checkouts; False while somebody validates the run."""
    if not folder.checkouts.exists():
        return True
    try:
        lease = store.acquire(run_id, f"clean:{token_hex(8)}", _MOMENT)
    except ToolError as error:
        if not error.retryable:
            raise
        # A disk that is full takes no lease of anybody else either, and this is how to empty it.
        lease = None
        if store.get(run_id).owner:
            return False
    else:
        if lease is None:
            return not folder.checkouts.exists()
    try:
        with suppress(FileNotFoundError):  # somebody else was quicker
            folder.checkouts.rename(folder.leftover(token_hex(8)))
    finally:
        if lease is not None:
            store.release(lease)
    return True


def _remove(folder: Path) -> None:
    """Remove a folder to its last file, though somebody else may be removing it too."""
    while folder.exists():
        with suppress(FileNotFoundError):  # this one is gone already; those behind it may not be
            shutil.rmtree(folder)


def _size(folder: Path) -> int:
    taken = 0
    for top, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):  # somebody else removes it too
                taken += (Path(top) / name).lstat().st_size
    return taken
