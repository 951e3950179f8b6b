"""The interface of a store of runs, implemented for SQLite and PostgreSQL.

Laws:
1. Everything that one call writes (a step, its events, the snapshot, the state) is written together
   or not at all, and is on the disk when the call returns.
2. A step is recorded once: a second record of it writes nothing and raises.
3. Only the holder of the newest lease writes. Taking a lease over, and cancelling, raise the epoch,
   and an older epoch is rejected.
4. An idempotency key has one run, however many processes ask at once.
5. The snapshot is the fold of the events.

Calls block and may be made from any thread. Times are seconds since the epoch.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import format_timestamp
from cleats.toolsets.launch.runs.events import EventDraft, LogTail, RunEvent, TraceIds, chain_events
from cleats.toolsets.launch.runs.snapshot import Snapshot, fold_event, get_state, make_empty_snapshot
from cleats.toolsets.launch.runs.states import TERMINAL_STATES, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run that is to be created."""

    run_id: str
    product_slug: str
    config: Mapping[str, Any]
    shown_config: Mapping[str, Any]
    """The configuration as others may read it: without paths and user names in URLs."""
    config_hash: str
    key: str = ""
    request_hash: str = ""
    """The hash of the request, if the configuration was derived from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as it is stored."""

    run_id: str
    number: int
    product_slug: str
    config_hash: str
    request_hash: str
    started_at: str
    finished_at: str
    epoch: int
    owner: str
    expires: float
    config: Mapping[str, Any] = field(repr=False)
    shown_config: Mapping[str, Any] = field(repr=False)
    snapshot: Snapshot = field(repr=False)
    tail: LogTail

    @property
    def state(self) -> RunState:
        return get_state(self.snapshot)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run as it appears in a list."""

    run_id: str
    number: int
    product_slug: str
    state: RunState
    started_at: str
    finished_at: str


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A recorded step and its output."""

    step: str
    output: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class RunLease:
    """The right to write to a run, until another process has a newer lease."""

    run_id: str
    owner: str
    epoch: int


class LeaseLost(Exception):  # noqa: N818 - it is what happened, not a fault
    """Raised when another process has taken the run over, or it was cancelled."""


class StepRecorded(Exception):  # noqa: N818 - as above
    """Raised when a step has been recorded before."""


class RunStore(Protocol):
    """A store of runs."""

    def create(self, new: NewRun, drafts: Iterable[EventDraft], trace: TraceIds) -> tuple[Run, bool]:
        """Create a run, or return the one that has its key; also return whether it is new.

        Raises:
            ToolError: INVALID_INPUT, the key belongs to a run with another configuration.
        """

    def find_by_key(self, key: str) -> Run | None:
        """Return the run that was started with this key, if there is one."""

    def get(self, run_id: str) -> Run:
        """Return a run.

        Raises:
            ToolError: RUN_NOT_FOUND.
        """

    def get_snapshot(self, run_id: str) -> Snapshot:
        """Return the snapshot of a run; the same errors as `get`."""

    def list_runs(
        self, *, product_slug: str = "", state: str = "", limit: int = 50, before: int = 0
    ) -> Sequence[RunSummary]:
        """Return runs, the newest first; `before` is the number of the last listed one."""

    def list_orphans(self, limit: int) -> Sequence[Run]:
        """Return runs that lost their driver and runs that never had one, the oldest first.

        A driver that ends releases its lease; the lease of a lost driver expires.
        """

    def list_steps(self, run_id: str) -> Sequence[RecordedStep]:
        """Return the recorded steps in the order of their records."""

    def list_events(self, run_id: str, after: int = 0) -> Sequence[RunEvent]:
        """Return the log, or the part after an event."""

    def verify(self, run_id: str) -> bool:
        """Verify the log of a run; return whether its snapshot is the fold of the log.

        Raises:
            BrokenChainError: the log was changed.
        """

    def rebuild_snapshot(self, lease: RunLease) -> None:
        """Rebuild the snapshot from the log.

        Raises:
            LeaseLost: the lease is no longer held.
        """

    def acquire(self, run_id: str, owner: str, seconds: float) -> RunLease | None:
        """Take the lease of a run if it is free; return None while another owner has it."""

    def renew(self, lease: RunLease, seconds: float) -> None:
        """Extend a lease.

        Raises:
            LeaseLost: the lease is no longer held.
        """

    def is_held(self, lease: RunLease) -> bool:
        """Return whether a lease is still the newest."""

    def release(self, lease: RunLease) -> None:
        """Release a lease. Nothing happens if it is lost already."""

    def record(
        self,
        lease: RunLease,
        drafts: Iterable[EventDraft],
        trace: TraceIds,
        *,
        step: RecordedStep | None = None,
    ) -> tuple[Run, Sequence[RunEvent]]:
        """Write a step, if there is one, the events and their consequences.

        Raises:
            LeaseLost: the lease is no longer held.
            StepRecorded: the step is recorded already.
            IllegalTransition: an event's change of state is not a legal transition.
        """

    def cancel(
        self, run_id: str, drafts: Callable[[Snapshot], Iterable[EventDraft]], trace: TraceIds
    ) -> tuple[Run, Sequence[RunEvent]]:
        """Cancel a run, whichever process drives it: its state and a new epoch, together.

        The events that `drafts` makes from the snapshot come before the change of state. A
        cancelled run stays unchanged.

        Raises:
            ToolError: RUN_NOT_FOUND; ILLEGAL_STATE for a run that is done or has failed.
        """

    def close(self) -> None:
        """Close the database. Safe to repeat."""


def make_not_found_error(run_id: str) -> ToolError:
    """Return the error of every call for a run that does not exist."""
    return ToolError(
        ErrorCode.RUN_NOT_FOUND,
        f"no run has the id {run_id!r}",
        hint="List the runs with launch_list_runs.",
    )


def check_key_owner(existing: Run, new: NewRun) -> Run:
    """Return the run that a key belongs to, if the new run asks for the same.

    Raises:
        ToolError: INVALID_INPUT, the configuration differs.
    """
    if existing.config_hash == new.config_hash or (new.request_hash and existing.request_hash == new.request_hash):
        return existing
    raise ToolError(
        ErrorCode.INVALID_INPUT,
        f"the idempotency key belongs to {existing.run_id}, which has another configuration",
        hint="Use another key, or the configuration of that run.",
        details={
            "existing_run_id": existing.run_id,
            "existing_hash": existing.config_hash,
            "given_hash": new.config_hash,
        },
    )


def make_cancel_error(run_id: str, state: RunState) -> ToolError:
    """Return the error of cancelling a run that is done or has failed."""
    return ToolError(
        ErrorCode.ILLEGAL_STATE,
        f"{run_id} is {state} and cannot be cancelled",
        hint="Nothing of it runs any more; its artifacts can be read.",
        details={"state": state.value},
    )


class RunUpdate(NamedTuple):
    """A run after a write, and the new events."""

    run: Run
    events: Sequence[RunEvent]


def begin_run(new: NewRun, drafts: Iterable[EventDraft], trace: TraceIds, *, now: float | None = None) -> RunUpdate:
    """Return a new run with its first events; its number is not known yet."""
    ts = format_timestamp(time.time() if now is None else now)
    initial_run = Run(
        run_id=new.run_id,
        number=0,
        product_slug=new.product_slug,
        config_hash=new.config_hash,
        request_hash=new.request_hash,
        started_at=ts,
        finished_at="",
        epoch=0,
        owner="",
        expires=0.0,
        config=new.config,
        shown_config=new.shown_config,
        snapshot=make_empty_snapshot(new.run_id),
        tail=LogTail(),
    )
    return append_events(initial_run, drafts, trace, now=now)


def append_events(run: Run, drafts: Iterable[EventDraft], trace: TraceIds, *, now: float | None = None) -> RunUpdate:
    """Return the run with more events.

    Raises:
        IllegalTransition: an event's change of state is not a legal transition.
    """
    ts = format_timestamp(time.time() if now is None else now)
    events, tail = chain_events(run.run_id, run.tail, drafts, trace, ts)
    snapshot = run.snapshot
    for event in events:
        snapshot = fold_event(snapshot, event)
    has_ended = not run.finished_at and get_state(snapshot) in TERMINAL_STATES
    updated_run = replace(run, snapshot=snapshot, tail=tail, finished_at=ts if has_ended else run.finished_at)
    return RunUpdate(updated_run, events)


def make_state_event(old: RunState, new: RunState) -> EventDraft:
    """Make the event that changes the state of a run."""
    return EventDraft("RUN_STATE_CHANGED", {"old_state": old.value, "new_state": new.value})
