"""The states of a run and of its sections, and the transitions between them.

Laws:
1. A change of state follows `LEGAL_TRANSITIONS`; anything else raises `IllegalTransition`, and nothing is written.
2. DONE, FAILED and CANCELLED are terminal: no transition leaves them.
3. Every other state can fail and can be cancelled.
4. A run that is neither driven nor ended is at its last recorded step; there is no paused state.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class RunState(StrEnum):
    """The state of a run."""

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
    """The state of a section of the site."""

    NOT_STARTED = "NOT_STARTED"
    OUTLINED = "OUTLINED"
    DRAFTED = "DRAFTED"
    MERGED_IN_WORKTREE = "MERGED_IN_WORKTREE"
    DONE = "DONE"
    BLOCKED = "BLOCKED"


TERMINAL_STATES = frozenset({RunState.DONE, RunState.FAILED, RunState.CANCELLED})

STATE_ORDER: tuple[RunState, ...] = tuple(
    state for state in RunState if state not in {RunState.FAILED, RunState.CANCELLED}
)
"""The states of a run that nothing stops, in order."""

STABLE_STATES = frozenset({RunState.PLAN_READY, RunState.DRAFT_READY, RunState.READY_FOR_PR})
"""States in which a run may rest between two calls. VALIDATING is another one while its report
exists and is not ok (see `drive.steps`)."""

_WORK_TRANSITIONS: Mapping[RunState, frozenset[RunState]] = {
    RunState.CREATED: frozenset({RunState.CLONED_INPUTS}),
    RunState.CLONED_INPUTS: frozenset({RunState.INGESTED}),
    RunState.INGESTED: frozenset({RunState.FACTS_READY}),
    RunState.FACTS_READY: frozenset({RunState.PLAN_READY}),
    RunState.PLAN_READY: frozenset({RunState.DRAFTING}),
    RunState.DRAFTING: frozenset({RunState.DRAFT_READY}),
    RunState.DRAFT_READY: frozenset({RunState.LINKING}),
    # Back to DRAFT_READY when the worktree changed after the patches were planned.
    RunState.LINKING: frozenset({RunState.VALIDATING, RunState.DRAFT_READY}),
    RunState.VALIDATING: frozenset({RunState.READY_FOR_PR, RunState.FIXING}),
    RunState.FIXING: frozenset({RunState.VALIDATING}),
    # Back to VALIDATING when a later validation of the worktree finds an issue.
    RunState.READY_FOR_PR: frozenset({RunState.PR_OPENED, RunState.VALIDATING}),
    RunState.PR_OPENED: frozenset({RunState.DONE}),
}

LEGAL_TRANSITIONS: Mapping[RunState, frozenset[RunState]] = MappingProxyType(
    {
        state: frozenset()
        if state in TERMINAL_STATES
        else _WORK_TRANSITIONS[state] | {RunState.FAILED, RunState.CANCELLED}
        for state in RunState
    }
)
"""Every legal change of state."""

REWIND_TARGETS: Mapping[RunState, RunState] = MappingProxyType(
    {RunState.LINKING: RunState.DRAFT_READY, RunState.FIXING: RunState.VALIDATING}
)
"""The state that an interrupted state returns to when its inputs have changed in the meantime."""


class IllegalTransition(Exception):  # noqa: N818 - it is one
    """Raised when a change of state is not a legal transition."""

    def __init__(self, old: RunState, new: RunState) -> None:
        super().__init__(f"no run goes from {old} to {new}")
        self.old = old
        self.new = new


def check_transition(old: RunState, new: RunState) -> None:
    """Check that a change of state is legal.

    Raises:
        IllegalTransition: there is no such transition.
    """
    if new not in LEGAL_TRANSITIONS[old]:
        raise IllegalTransition(old, new)


def has_reached(state: RunState, target: RunState) -> bool:
    """Return whether a run has reached a state. A failed or cancelled run has reached none."""
    return state in STATE_ORDER and STATE_ORDER.index(state) >= STATE_ORDER.index(target)
