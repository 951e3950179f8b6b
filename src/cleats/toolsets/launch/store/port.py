"""What a store of runs promises. SQLite keeps it here; another database can keep it too.

Laws:
1. Whatever one call writes (a step, its events, the snapshot, the state) is written together or
   not at all, and is on the disk when the call returns.
2. A step is recorded once: a second record of it writes nothing and raises.
3. Only the holder of the newest lease writes. Taking a lease over, and cancelling, raise the
   epoch, and an older epoch is refused.
4. One idempotency key has one run, however many processes ask at once.
5. The snapshot is the fold of the events.

Calls block and may be made from any thread. Times are seconds since the epoch.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.events import Draft, Event, Tail, Trace
from cleats.toolsets.launch.snapshot import Snapshot, state_of
from cleats.toolsets.launch.states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run to be."""

    run_id: str
    product_slug: str
    config: Mapping[str, Any]
    shown_config: Mapping[str, Any]
    """The configuration as others may read it: no path, no user name in an address."""
    config_hash: str
    key: str = ""
    request_hash: str = ""
    """Of what was asked for, when the configuration was derived from it."""


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
    tail: Tail

    @property
    def state(self) -> State:
        return state_of(self.snapshot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A run in a list."""

    run_id: str
    number: int
    product_slug: str
    state: State
    started_at: str
    finished_at: str


@dataclass(frozen=True, slots=True)
class Step:
    """A recorded step and what it returned."""

    step: str
    output: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a run, until somebody else has a newer one."""

    run_id: str
    owner: str
    epoch: int


class LeaseLost(Exception):  # noqa: N818 - it is what happened, not a fault
    """Raised when somebody else has taken the run over, or it was cancelled."""


class StepRecorded(Exception):  # noqa: N818 - as above
    """Raised when a step has been recorded before."""


class RunStore(Protocol):
    """A store of runs."""

    def create(self, new: NewRun, drafts: Iterable[Draft], trace: Trace) -> tuple[Run, bool]:
        """Create a run, or find the one that has its key; say which.

        Raises:
            ToolError: INVALID_INPUT, the key belongs to a run with another configuration.
        """

    def find(self, key: str) -> Run | None:
        """The run that was started with this key."""

    def get(self, run_id: str) -> Run:
        """One run.

        Raises:
            ToolError: RUN_NOT_FOUND.
        """

    def snapshot(self, run_id: str) -> Snapshot:
        """The snapshot of one run; the same errors as `get`."""

    def list(
        self, *, product_slug: str = "", state: str = "", limit: int = 50, before: int = 0
    ) -> Sequence[Listed]:
        """Runs, the newest first; `before` is the number of the last one seen."""

    def orphans(self, limit: int) -> Sequence[Run]:
        """Runs whose driver was lost, and runs that nobody has begun, the oldest first.

        A driver that ends gives its lease back; one that is lost leaves it to run out.
        """

    def steps(self, run_id: str) -> Sequence[Step]:
        """The recorded steps in the order of their records."""

    def events(self, run_id: str, after: int = 0) -> Sequence[Event]:
        """The log, or what came after an event."""

    def verify(self, run_id: str) -> bool:
        """Let a run pass whose log is as it was written; say whether its snapshot is told by it.

        Raises:
            BrokenChainError: the log was changed.
        """

    def rebuild(self, lease: Lease) -> None:
        """Make the snapshot anew from the log.

        Raises:
            LeaseLost: the lease is not ours any more.
        """

    def acquire(self, run_id: str, owner: str, seconds: float) -> Lease | None:
        """Take the lease of a run if nobody has it; None while somebody does."""

    def renew(self, lease: Lease, seconds: float) -> None:
        """Keep a lease for longer.

        Raises:
            LeaseLost: it is not ours any more.
        """

    def held(self, lease: Lease) -> bool:
        """Whether a lease is still the newest."""

    def release(self, lease: Lease) -> None:
        """Give a lease back. Nothing happens when it is lost already."""

    def record(
        self,
        lease: Lease,
        drafts: Iterable[Draft],
        trace: Trace,
        *,
        step: Step | None = None,
    ) -> tuple[Run, Sequence[Event]]:
        """Write a step, if there is one, and events, and what follows from them.

        Raises:
            LeaseLost: the lease is not ours any more.
            StepRecorded: the step is there already.
            IllegalTransition: an event changes the state along no edge.
        """

    def cancel(
        self, run_id: str, drafts: Callable[[Snapshot], Iterable[Draft]], trace: Trace
    ) -> tuple[Run, Sequence[Event]]:
        """Cancel a run, whoever drives it: its state and a new epoch, together.

        What `drafts` makes of the snapshot comes before the change of state. A cancelled run is
        left as it is.

        Raises:
            ToolError: RUN_NOT_FOUND; ILLEGAL_STATE for a run that is done or has failed.
        """

    def close(self) -> None:
        """Let go of the database. Safe to repeat."""


def not_found(run_id: str) -> ToolError:
    """The error of every call for a run that is not there."""
    return ToolError(
        ErrorCode.RUN_NOT_FOUND,
        f"no run has the id {run_id!r}",
        hint="List the runs with launch_list_runs.",
    )


def claimed(existing: Run, new: NewRun) -> Run:
    """The run that a key belongs to, when the same thing is asked for again.

    Raises:
        ToolError: INVALID_INPUT, it is something else.
    """
    if existing.config_hash == new.config_hash or (
        new.request_hash and existing.request_hash == new.request_hash
    ):
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


def refuse_cancel(run_id: str, state: State) -> ToolError:
    """The error of cancelling what has ended otherwise."""
    return ToolError(
        ErrorCode.ILLEGAL_STATE,
        f"{run_id} is {state} and cannot be cancelled",
        hint="Nothing of it runs any more; its artifacts can be read.",
        details={"state": state.value},
    )
