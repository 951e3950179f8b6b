"""Why a tool does not work on a run: the preconditions of spec e, and their words."""

from collections.abc import Iterable, Mapping
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drive.steps import KINDS
from cleats.toolsets.launch.folder import RunFolder
from cleats.toolsets.launch.states import ORDER, TERMINAL, State, at_least
from cleats.toolsets.launch.store.port import Run

_NEXT: Final[Mapping[State, str]] = {
    State.VALIDATING: "launch_validate runs the gates; launch_fix_next takes what they found.",
    State.READY_FOR_PR: "launch_open_pr goes on.",
    State.DONE: "It is published, as its artifact pr.json says; start another run for more.",
    State.FAILED: "launch_get_status has the issue that ended it; start another run.",
}
"""What can be done with a run in a state; `launch_resume` where nothing is said."""

_CHECKOUTS: Final[Mapping[str, tuple[str, str]]] = {
    "site": ("no_worktree", "the worktree of the site"),
    "repo": ("no_source", "the checkout of the source"),
}


def refuse(run: Run, least: State | None = None, *, only: bool = False, ends: bool = False) -> None:
    """Let a run pass that is far enough: at least in a state, or `only` in it.

    `ends` lets one pass that is done.

    Raises:
        ToolError: CANCELLED for a cancelled run, ILLEGAL_STATE for any other.
    """
    if run.state is State.CANCELLED:
        raise cancelled(run.run_id)
    if least is None:
        fits = run.state not in TERMINAL
        allowed = [state for state in ORDER if state not in TERMINAL]
    elif only:
        fits, allowed = run.state is least, [least]
    else:
        fits = at_least(run.state, least) and (ends or run.state not in TERMINAL)
        allowed = [state for state in ORDER if at_least(state, least)]
    if not fits:
        raise illegal(run, f"it is {run.state}", allowed)


def illegal(run: Run, why: str, allowed: Iterable[State]) -> ToolError:
    """The run is in a state in which the tool cannot work."""
    return ToolError(
        ErrorCode.ILLEGAL_STATE,
        f"{run.run_id} cannot do this now: {why}",
        hint=_NEXT.get(run.state, "launch_resume takes it to its next boundary."),
        details={"state": run.state.value, "allowed": [state.value for state in allowed]},
    )


def need(run: Run, folder: RunFolder, kind: str) -> None:
    """Let a run pass that has the checkouts which a kind of step reads.

    Raises:
        ToolError: ILLEGAL_STATE, somebody removed one; the run stays as it is.
    """
    for name in KINDS[kind].reads:
        if not (folder.checkouts / name).is_dir():
            reason, meaning = _CHECKOUTS[name]
            raise ToolError(
                ErrorCode.ILLEGAL_STATE,
                f"{run.run_id} cannot do this now: {meaning} is gone",
                hint="Start another run."
                if run.state in TERMINAL
                else "Put it back, as by mounting the storage that the runs are on, or start "
                "another run; launch_cancel ends this one.",
                details={"state": run.state.value, "reason": reason},
            )


def cancelled(run_id: str) -> ToolError:
    """The run was cancelled, before or meanwhile."""
    return ToolError(
        ErrorCode.CANCELLED,
        f"{run_id} was cancelled",
        hint="Start another run.",
        details={"state": State.CANCELLED.value},
    )


def exhausted(limit: int) -> ToolError:
    """The run has used up its fixes."""
    return ToolError(
        ErrorCode.FIX_EXHAUSTED,
        f"no fix attempt is left of the {limit} that the run may make",
        hint="The run has failed; start another with a higher max_fix_attempts.",
        details={"reason": "max_fix_attempts", "max_fix_attempts": limit},
    )


def taken_over(run: Run) -> ToolError:
    """Another process has the run now; what it records counts."""
    return ToolError(
        ErrorCode.ILLEGAL_STATE,
        f"another server has taken {run.run_id} over",
        hint="Call launch_resume to wait for it.",
        retryable=True,
        details={"state": run.state.value},
    )
