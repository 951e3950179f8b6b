"""The preconditions of the tools (spec e), and the errors of runs that do not meet them."""

from collections.abc import Iterable, Mapping
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drive.pipeline import STEP_KINDS
from cleats.toolsets.launch.runs.states import STATE_ORDER, TERMINAL_STATES, RunState, has_reached
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.store.interface import Run

_NEXT_CALL_HINTS: Final[Mapping[RunState, str]] = {
    RunState.VALIDATING: "launch_validate runs the gates; launch_fix_next takes what they found.",
    RunState.READY_FOR_PR: "launch_open_pr goes on.",
    RunState.DONE: "It is published, as its artifact pr.json says; start another run for more.",
    RunState.FAILED: "launch_get_status has the issue that ended it; start another run.",
}
"""Hints for a run in a state; `launch_resume` is suggested for the other states."""

_CHECKOUT_LABELS: Final[Mapping[str, tuple[str, str]]] = {
    "site": ("no_worktree", "the worktree of the site"),
    "repo": ("no_source", "the checkout of the source"),
}


def check_run_state(
    run: Run, required: RunState | None = None, *, exact: bool = False, allow_done: bool = False
) -> None:
    """Check that a run has reached the required state, or is exactly in it.

    `allow_done` also accepts a run that is done.

    Raises:
        ToolError: CANCELLED for a cancelled run, ILLEGAL_STATE for any other.
    """
    if run.state is RunState.CANCELLED:
        raise make_cancelled_error(run.run_id)
    if required is None:
        is_allowed = run.state not in TERMINAL_STATES
        allowed = [state for state in STATE_ORDER if state not in TERMINAL_STATES]
    elif exact:
        is_allowed, allowed = run.state is required, [required]
    else:
        is_allowed = has_reached(run.state, required) and (allow_done or run.state not in TERMINAL_STATES)
        allowed = [state for state in STATE_ORDER if has_reached(state, required)]
    if not is_allowed:
        raise make_illegal_state_error(run, f"it is {run.state}", allowed)


def make_illegal_state_error(run: Run, reason: str, allowed: Iterable[RunState]) -> ToolError:
    """Return the error of a run whose state does not allow the call."""
    return ToolError(
        ErrorCode.ILLEGAL_STATE,
        f"{run.run_id} cannot do this now: {reason}",
        hint=_NEXT_CALL_HINTS.get(run.state, "launch_resume takes it to its next boundary."),
        details={"state": run.state.value, "allowed": [state.value for state in allowed]},
    )


def check_checkouts(run: Run, folder: RunFolder, kind: str) -> None:
    """Check that a run has the checkouts that a kind of step reads.

    Raises:
        ToolError: ILLEGAL_STATE, a checkout was removed; the run stays as it is.
    """
    for name in STEP_KINDS[kind].reads:
        if not (folder.checkouts / name).is_dir():
            reason, meaning = _CHECKOUT_LABELS[name]
            raise ToolError(
                ErrorCode.ILLEGAL_STATE,
                f"{run.run_id} cannot do this now: {meaning} is gone",
                hint="Start another run."
                if run.state in TERMINAL_STATES
                else "Put it back, as by mounting the storage that the runs are on, or start "
                "another run; launch_cancel ends this one.",
                details={"state": run.state.value, "reason": reason},
            )


def make_cancelled_error(run_id: str) -> ToolError:
    """Return the error of a run that was cancelled, before the call or during it."""
    return ToolError(
        ErrorCode.CANCELLED,
        f"{run_id} was cancelled",
        hint="Start another run.",
        details={"state": RunState.CANCELLED.value},
    )


def make_fixes_exhausted_error(limit: int) -> ToolError:
    """Return the error of a run that has used up its fixes."""
    return ToolError(
        ErrorCode.FIX_EXHAUSTED,
        f"no fix attempt is left of the {limit} that the run may make",
        hint="The run has failed; start another with a higher max_fix_attempts.",
        details={"reason": "max_fix_attempts", "max_fix_attempts": limit},
    )


def make_taken_over_error(run: Run) -> ToolError:
    """Return the error of a run that another process has taken over."""
    return ToolError(
        ErrorCode.ILLEGAL_STATE,
        f"another server has taken {run.run_id} over",
        hint="Call launch_resume to wait for it.",
        retryable=True,
        details={"state": run.state.value},
    )
