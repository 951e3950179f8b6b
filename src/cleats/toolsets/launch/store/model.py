"""The model of a store of runs: its values, how events change a run, its tables and connections."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final, Self

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import format_timestamp
from cleats.toolsets.launch.runs.events import EventDraft, LogTail, RunEvent, TraceIds, chain_events
from cleats.toolsets.launch.runs.snapshot import Snapshot, fold_event, get_state
from cleats.toolsets.launch.runs.states import TERMINAL_STATES, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as it is stored or, without a number, as it is to be created."""

    run_id: str
    product_slug: str
    config: Mapping[str, Any] = field(repr=False)
    shown_config: Mapping[str, Any] = field(repr=False)
    """The configuration as others may read it: without paths and user names in URLs."""
    config_hash: str
    key: str = ""
    """The idempotency key that it is to be created with."""
    request_hash: str = ""
    """The hash of the request, if the configuration was derived from it."""
    number: int = 0
    started_at: str = ""
    finished_at: str = ""
    epoch: int = 0
    owner: str = ""
    expires: float = 0.0
    snapshot: Snapshot = field(default_factory=dict, repr=False)
    tail: LogTail = field(default_factory=LogTail)

    @property
    def state(self) -> RunState:
        return get_state(self.snapshot)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run as it appears in a list."""

    run_id: str
    number: int
    product_slug: str
    started_at: str
    finished_at: str
    state: RunState


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


class StoreUnreachableError(ToolError):
    """Raised when the database does not answer, or the connection was lost during the call."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            ErrorCode.INTERNAL,
            "The database of the runs is unreachable.",
            hint="Try again when it is reachable: no record is incomplete, and runs continue at their last "
            "record. A run started without an idempotency_key may exist already; see launch_list_runs.",
            retryable=True,
            details={"cause_class": cause},
        )


def make_not_found_error(run_id: str) -> ToolError:
    """Return the error of every call for a run that does not exist."""
    return ToolError(
        ErrorCode.RUN_NOT_FOUND, f"no run has the id {run_id!r}", hint="List the runs with launch_list_runs."
    )


def check_key_owner(existing: Run, new: Run) -> Run:
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


def append_events(run: Run, drafts: Iterable[EventDraft], trace: TraceIds) -> tuple[Run, Sequence[RunEvent]]:
    """Return the run with more events, and those events.

    Raises:
        IllegalTransition: an event's change of state is not a legal transition.
    """
    ts = format_timestamp(time.time())
    events, tail = chain_events(run.run_id, run.tail, drafts, trace, ts)
    snapshot = reduce(fold_event, events, run.snapshot)
    has_ended = not run.finished_at and get_state(snapshot) in TERMINAL_STATES
    return replace(run, snapshot=snapshot, tail=tail, finished_at=ts if has_ended else run.finished_at), events


def make_state_event(old: RunState, new: RunState) -> EventDraft:
    """Make the event that changes the state of a run."""
    return EventDraft("RUN_STATE_CHANGED", {"old_state": old.value, "new_state": new.value})


RUN_TABLES_SQL: Final = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8")
"""The tables, for either engine: SQLite reads BIGINT and DOUBLE PRECISION as INTEGER and REAL."""


class SqlConnection(ABC):
    """A connection for all threads, one transaction at a time; opened when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Self]:
        """Open a transaction: committed if the block succeeds, otherwise rolled back."""

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement inside a transaction; return its cursor."""

    def now(self) -> float:
        """Return the time by which leases are measured: one clock for all users of the database."""
        return time.time()

    def lock_name(self, name: str) -> None:  # noqa: B027 - a database with one writer needs none
        """Block others that lock the same name until the transaction ends."""

    @abstractmethod
    def insert_row(self, statement: str, values: Sequence[Any]) -> bool:
        """Insert a row; return False if a row with its key exists."""

    @abstractmethod
    def disconnect(self) -> None:
        """Close the connection if it is open."""

    def close(self) -> None:
        """Close the connection once no transaction uses it. Safe to repeat."""
        with self._lock:
            self.disconnect()
