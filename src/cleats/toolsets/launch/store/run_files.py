"""The files of a run: artifacts as they are handed out, views for people, removal of checkouts.

Artifacts are found by the names of the index, never by path. Besides them, every run has three views that are rendered
on request: its configuration, its snapshot and its log.

A checkout of an ended run is renamed under a lease on its run, then removed; records and artifacts stay. So other
processes see either all of it or nothing, and the next clean-up finds what an interrupted one has left.
"""

import logging
import os
import shutil
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.runs.artifacts import encode_canonical_json, guess_content_type
from cleats.toolsets.launch.runs.states import TERMINAL_STATES, RunState
from cleats.toolsets.launch.runs.storage import RunFolder, measure_folder
from cleats.toolsets.launch.store.model import Run
from cleats.toolsets.launch.store.run_store import RunStore

log = logging.getLogger(__name__)

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
                if not days or datetime.fromisoformat(run.finished_at or run.started_at) <= latest_end:
                    yield run.run_id, run.state
            before = page[-1].number


def _clean_run(store: RunStore, run_id: str, state: RunState, folder: RunFolder, *, dry_run: bool) -> CleanedRun:
    size = sum(measure_folder(path) for path in (folder.checkouts, *folder.leftovers))
    problem = ""
    try:
        if not dry_run and not _set_checkouts_aside(store, run_id, folder):
            problem = "another process is using it"
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


EVENTS_NAME, SNAPSHOT_NAME, CONFIG_NAME = "events.ndjson", "snapshot.json", "run_config.yaml"
VIEW_NAMES = (EVENTS_NAME, SNAPSHOT_NAME, CONFIG_NAME)
"""Documents that can be read for every run besides its artifacts."""


def render_view(store: RunStore, run: Run, name: str) -> bytes:
    """Render one of the views from the current state of the run."""
    if name == EVENTS_NAME:
        events = store.list_events(run.run_id)
        return b"".join(msgspec.json.encode(event.as_json()) + b"\n" for event in events)
    if name == SNAPSHOT_NAME:
        return encode_canonical_json(run.snapshot)
    import yaml  # noqa: PLC0415 - only for those who look

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


BASE64_SUFFIX: Final = ";base64"
"""Suffix of the media type when the content is encoded as base64."""

_TEXT_TYPE_PREFIXES: Final = ("text/", "application/json", "application/x-", "application/toml", "image/svg")


@dataclass(frozen=True, slots=True)
class RunArtifact:
    """An artifact: its name, media type and bytes."""

    name: str
    content_type: str
    data: bytes

    @property
    def sha256(self) -> str:
        return sha256(self.data).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return the artifact as JSON: text as it is, anything else as marked base64."""
        document = {"name": self.name, "content_type": self.content_type, "sha256": self.sha256}
        if self.content_type.startswith(_TEXT_TYPE_PREFIXES):
            with suppress(UnicodeDecodeError):
                return {**document, "content": self.data.decode()}
        encoded = {"content_type": f"{self.content_type}{BASE64_SUFFIX}", "content": b64encode(self.data).decode()}
        return {**document, **encoded}


def read_artifact(store: RunStore, runs: Path, run_id: str, name: str) -> RunArtifact:
    """Return one artifact of a run.

    Raises:
        ToolError: RUN_NOT_FOUND; INVALID_INPUT, the run has no artifact of this name, and the
            details list the names it has.
    """
    run = store.get(run_id)
    index: Mapping[str, Any] = run.snapshot["artifacts_index"]
    if name in index:
        data = RunFolder(runs / run_id).get_object(index[name]["sha256"])
    elif name in VIEW_NAMES:
        data = render_view(store, run, name)
    else:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            f"{run_id} has no artifact {name[:200]!r}",
            hint="Use a name that the details list.",
            details={"known": sorted({*index, *VIEW_NAMES})},
        )
    return RunArtifact(name, guess_content_type(name), data)
