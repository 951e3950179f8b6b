"""Removal of the checkouts of ended runs; records and artifacts stay.

A checkout is renamed under a lease on its run, then removed. So other processes see either all of
it or nothing, and the next clean-up finds what an interrupted one has left.
"""

import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.runs.artifacts import encode_canonical_json
from cleats.toolsets.launch.runs.states import TERMINAL_STATES, RunState
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.store.interface import Run, RunStore, RunSummary

_RUNS_PER_PAGE: Final = 200
_LEASE_SECONDS: Final = 10.0
"""Duration of the lease that a clean-up requests; renaming a folder takes no time."""


@dataclass(frozen=True, slots=True)
class CleanedRun:
    """The disk usage of one cleaned run; `problem` says why its checkouts could not be removed."""

    run_id: str
    state: RunState
    size: int
    problem: str = ""


def clean_runs(
    store: RunStore, runs: Path, run_ids: Sequence[str] = (), *, days: float = 0, dry_run: bool
) -> list[CleanedRun]:
    """Remove the checkouts of the named runs, or of all ended runs.

    Without `run_ids`, only runs that ended at least `days` days ago are cleaned.

    Raises:
        ToolError: RUN_NOT_FOUND; ILLEGAL_STATE, a named run has not ended.
    """
    selected_runs = (
        [_require_ended(store, selected_id) for selected_id in run_ids] if run_ids else [*_iter_ended_runs(store, days)]
    )
    run_folders = [(run_id, state, RunFolder(runs / run_id)) for run_id, state in selected_runs]
    return [
        _clean_run(store, run_id, state, folder, dry_run=dry_run)
        for run_id, state, folder in run_folders
        if folder.checkouts.exists() or folder.leftovers
    ]


def _require_ended(store: RunStore, run_id: str) -> tuple[str, RunState]:
    state = store.get(run_id).state
    if state not in TERMINAL_STATES:
        raise ToolError(
            ErrorCode.ILLEGAL_STATE,
            f"{run_id} has not ended: it is {state}",
            hint="launch_cancel ends it.",
            details={"state": state.value, "allowed": sorted(TERMINAL_STATES)},
        )
    return run_id, state


def _iter_ended_runs(store: RunStore, days: float) -> Iterator[tuple[str, RunState]]:
    latest_end = datetime.now(UTC) - timedelta(days=days)
    for state in sorted(TERMINAL_STATES):
        before = 0
        while page := store.list_runs(state=state, limit=_RUNS_PER_PAGE, before=before):
            for run in page:
                if not days or _parse_end_time(run) <= latest_end:
                    yield run.run_id, run.state
            before = page[-1].number


def _parse_end_time(run: RunSummary) -> datetime:
    return datetime.fromisoformat(run.finished_at or run.started_at)


def _clean_run(store: RunStore, run_id: str, state: RunState, folder: RunFolder, *, dry_run: bool) -> CleanedRun:
    size = sum(_count_folder_bytes(path) for path in (folder.checkouts, *folder.leftovers))
    problem = ""
    try:
        if not dry_run and not _set_checkouts_aside(store, run_id, folder):
            problem = "somebody works with it"
        for path in () if dry_run else folder.leftovers:
            _remove_folder(path)
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else type(error).__name__
    return CleanedRun(run_id, state, size, problem)


def _set_checkouts_aside(store: RunStore, run_id: str, folder: RunFolder) -> bool:
    """Rename the checkouts of a run; return False while another process works with it."""
    if not folder.checkouts.exists():
        return True
    try:
        lease = store.acquire(run_id, f"clean:{token_hex(8)}", _LEASE_SECONDS)
    except ToolError as error:
        if not error.retryable:
            raise
        # A full disk accepts no lease from any process, and cleaning is the way to empty it.
        lease = None
        if store.get(run_id).owner:
            return False
    else:
        if lease is None:
            return not folder.checkouts.exists()
    try:
        with suppress(FileNotFoundError):  # another process was quicker
            folder.checkouts.rename(folder.make_leftover_path(token_hex(8)))
    finally:
        if lease is not None:
            store.release(lease)
    return True


def _remove_folder(folder: Path) -> None:
    """Remove a folder completely, even while another process removes it too."""
    while folder.exists():
        with suppress(FileNotFoundError):  # this file is gone already; the following ones may remain
            shutil.rmtree(folder)


def _count_folder_bytes(folder: Path) -> int:
    total_bytes = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):  # another process removes it too
                total_bytes += (Path(parent) / name).lstat().st_size
    return total_bytes


log = logging.getLogger(__name__)

EVENTS_NAME, SNAPSHOT_NAME, CONFIG_NAME = "events.ndjson", "snapshot.json", "run_config.yaml"
VIEW_NAMES = (EVENTS_NAME, SNAPSHOT_NAME, CONFIG_NAME)
"""Documents that can be read for every run besides its artifacts."""


def render_view(store: RunStore, run: Run, name: str) -> bytes:
    """Render one of the views from the current state of the run."""
    if name == EVENTS_NAME:
        import msgspec  # noqa: PLC0415 - only for those who look

        events = store.list_events(run.run_id)
        return b"".join(msgspec.json.encode(event.as_json()) + b"\n" for event in events)
    if name == SNAPSHOT_NAME:
        return encode_canonical_json(run.snapshot)
    import yaml  # noqa: PLC0415 - as above

    text: str = yaml.safe_dump(dict(run.shown_config), sort_keys=True, allow_unicode=True)
    return text.encode()


def export_run(store: RunStore, folder: RunFolder) -> None:
    """Write the views and artifacts of a run. A failure is only logged: nothing depends on them."""
    try:
        run = store.get(folder.root.name)
        for name in VIEW_NAMES:
            folder.write_view(name, render_view(store, run, name))
        for name, entry in run.snapshot["artifacts_index"].items():
            target = folder.root / "artifacts" / name
            if not target.is_file() or sha256(target.read_bytes()).hexdigest() != entry["sha256"]:
                folder.write_view(f"artifacts/{name}", folder.get_object(entry["sha256"]))
    except (OSError, ToolError):
        log.exception("export.fail run=%s", folder.root.name)
