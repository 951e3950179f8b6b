"""The states of a run and of its sections, and the edges between them.

Laws:
1. A change of state follows an edge of `EDGES`; anything else is an `IllegalTransition`, and
   nothing is written.
2. DONE, FAILED and CANCELLED absorb: no edge leaves them.
3. Every other state can fail and can be cancelled.
4. A run that is neither driven nor at an end is at its last recorded step; there is no state for
   being paused.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    """Where a run is."""

    CREATED = "CREATED"
    CLONED_INPUTS = "CLONED_INPUTS"
    INGESTED = "INGESTED"
    FACTS_READY = "FACTS_READY"
    PLAN_READY = "PLAN_READY"
    DRAFTING = "DRAFTING"
    DRAFT_READY = "DRAFT_READY"
    LINKING = "LINKING"
    VALIDATING = "VALIDATING"
    FIXING = "FIXING"
    READY_FOR_PR = "READY_FOR_PR"
    PR_OPENED = "PR_OPENED"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class SectionState(StrEnum):
    """Where a section of the site is."""

    NOT_STARTED = "NOT_STARTED"
    OUTLINED = "OUTLINED"
    DRAFTED = "DRAFTED"
    MERGED_IN_WORKTREE = "MERGED_IN_WORKTREE"
    DONE = "DONE"
    BLOCKED = "BLOCKED"


TERMINAL = frozenset({State.DONE, State.FAILED, State.CANCELLED})

ORDER: tuple[State, ...] = tuple(
    state for state in State if state not in {State.FAILED, State.CANCELLED}
)
"""The way a run goes when nothing stops it."""

STABLE = frozenset({State.PLAN_READY, State.DRAFT_READY, State.READY_FOR_PR})
"""Where a run may rest between two calls. VALIDATING is another such place while its report is
there and not ok (see `drive.steps`)."""

_ONWARD: Mapping[State, frozenset[State]] = {
    State.CREATED: frozenset({State.CLONED_INPUTS}),
    State.CLONED_INPUTS: frozenset({State.INGESTED}),
    State.INGESTED: frozenset({State.FACTS_READY}),
    State.FACTS_READY: frozenset({State.PLAN_READY}),
    State.PLAN_READY: frozenset({State.DRAFTING}),
    State.DRAFTING: frozenset({State.DRAFT_READY}),
    State.DRAFT_READY: frozenset({State.LINKING}),
    # Back to DRAFT_READY when the worktree changed after the patches were planned.
    State.LINKING: frozenset({State.VALIDATING, State.DRAFT_READY}),
    State.VALIDATING: frozenset({State.READY_FOR_PR, State.FIXING}),
    State.FIXING: frozenset({State.VALIDATING}),
    # Back to VALIDATING when a later look at the worktree finds something.
    State.READY_FOR_PR: frozenset({State.PR_OPENED, State.VALIDATING}),
    State.PR_OPENED: frozenset({State.DONE}),
}

EDGES: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        state: frozenset()
        if state in TERMINAL
        else _ONWARD[state] | {State.FAILED, State.CANCELLED}
        for state in State
    }
)
"""Every legal change of state."""

REWINDS: Mapping[State, State] = MappingProxyType(
    {State.LINKING: State.DRAFT_READY, State.FIXING: State.VALIDATING}
)
"""Where an interrupted state goes back to when what it worked on has changed meanwhile."""


class IllegalTransition(Exception):  # noqa: N818 - it is one
    """Raised when a run would change its state along no edge."""

    def __init__(self, old: State, new: State) -> None:
        super().__init__(f"no run goes from {old} to {new}")
        self.old = old
        self.new = new


def check(old: State, new: State) -> None:
    """Let a legal change pass.

    Raises:
        IllegalTransition: there is no such edge.
    """
    if new not in EDGES[old]:
        raise IllegalTransition(old, new)


def at_least(state: State, other: State) -> bool:
    """Whether a run has come as far as another state. One that failed or was cancelled has not."""
    return state in ORDER and ORDER.index(state) >= ORDER.index(other)
