"""The pipeline as data and functions: the next step of a run, the state after it, and what a call needs.

A step is identified by its id and is recorded once. Where a kind of step may be needed again (another validation,
another fix, a link after the worktree changed), the id has a number:

    clone  inventory  facts  snippets  plan  draft:<section>  link  apply
    validate:<n>  fix:<n>  apply:fix:<n>  rewind:<n>  commit  request

So the next action follows from the state and the recorded steps alone, whichever process asks, and after any crash.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.runs.states import STATE_ORDER, TERMINAL_STATES, RunState, has_reached
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.store.model import Run

SECTION_ORDER = ("products", "docs", "reference", "kb", "blog")
"""The order in which sections are written."""


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind of step and the worker that does it."""

    name: str
    worker: str
    module: str
    """The module of `workers` that has the function `run_<name>`."""
    reads: tuple[str, ...] = ("site", "repo")
    """The checkouts that must exist: without the source no gate could prove a claim."""


STEP_KINDS: Mapping[str, StepKind] = {
    kind.name: kind
    for kind in (
        StepKind("clone", "W1", "ingest", reads=()),
        StepKind("inventory", "W1", "ingest"),
        StepKind("facts", "W2", "ingest"),
        StepKind("snippets", "W3", "ingest"),
        StepKind("plan", "W4", "pages"),
        StepKind("draft", "W5", "pages"),
        StepKind("link", "W6", "patches"),
        StepKind("apply", "W6", "patches"),
        StepKind("validate", "W7", "validate"),
        StepKind("fix", "W8", "fix"),
        StepKind("commit", "W9", "publish", reads=("site",)),
        StepKind("request", "W9", "publish", reads=("site",)),
    )
}

WORKER_FUNCTIONS: Mapping[str, str] = {
    kind.name: f"cleats.toolsets.launch.workers.{kind.module}:run_{kind.name}" for kind in STEP_KINDS.values()
}
"""The function of each kind of step, as `module:function`."""

STAGES_BY_STATE: Mapping[RunState, tuple[tuple[str, ...], RunState]] = {
    RunState.CREATED: (("clone",), RunState.CLONED_INPUTS),
    RunState.CLONED_INPUTS: (("inventory",), RunState.INGESTED),
    RunState.INGESTED: (("facts", "snippets"), RunState.FACTS_READY),
    RunState.FACTS_READY: (("plan",), RunState.PLAN_READY),
    RunState.PLAN_READY: ((), RunState.DRAFTING),
    RunState.DRAFT_READY: ((), RunState.LINKING),
    RunState.PR_OPENED: ((), RunState.DONE),
}
"""The linear part of the pipeline: the steps of a state and the state after them."""


@dataclass(frozen=True, slots=True)
class StepWork:
    """A step to do."""

    step: str
    kind: StepKind
    scope: str = ""


@dataclass(frozen=True, slots=True)
class PipelineView:
    """A run as the pipeline sees it. `done` is in the order of the records."""

    state: RunState
    done: Mapping[str, Mapping[str, Any]]
    config: Mapping[str, Any]

    @property
    def sections(self) -> list[str]:
        """The sections to write, in order."""
        required: Sequence[str] = self.config["required_sections"]
        ordered = [name for name in SECTION_ORDER if name in required]
        return ordered + [name for name in required if name not in SECTION_ORDER]

    @property
    def report(self) -> Mapping[str, Any] | None:
        """The result of the last validation, if nothing has changed the worktree since."""
        last = _find_last_step(self.done, "validate", "apply", "rewind")
        return self.done[last] if last.startswith("validate") else None

    @property
    def unjudged_fix(self) -> Mapping[str, Any] | None:
        """The facts of the fix that was applied since the last validation, if there is one."""
        last = _find_last_step(self.done, "validate", "apply", "rewind")
        return self.done[last.removeprefix("apply:")] if last.startswith("apply:fix") else None

    @property
    def fix_count(self) -> int:
        """The number of attempted fixes."""
        return _count_steps(self.done, "fix")

    @property
    def can_fix(self) -> bool:
        """True if the run rests at a report that is not ok."""
        return self.state is RunState.VALIDATING and self.report is not None and not self.report["ok"]


def find_next_action(view: PipelineView) -> StepWork | RunState | None:
    """Return what a run does next by itself: a step, a change of state, or nothing."""
    match view.state:
        case RunState.DRAFTING:
            steps = [f"draft:{section}" for section in view.sections]
            return _find_missing_work(view, steps) or RunState.DRAFT_READY
        case RunState.LINKING:
            number = _count_steps(view.done, "rewind") + 1
            steps = [_format_step(name, number) for name in ("link", "apply")]
            return _find_missing_work(view, steps) or RunState.VALIDATING
        case RunState.VALIDATING:
            next_state = RunState.READY_FOR_PR if view.report and view.report["ok"] else None
            return make_validation_work(view) if view.report is None else next_state
        case RunState.FIXING:
            number = view.fix_count
            is_unapplied = _find_last_step(view.done, "fix", "apply", "rewind") == f"fix:{number}"
            has_patches = is_unapplied and view.done[f"fix:{number}"].get("patch_ids")
            return _make_work(f"apply:fix:{number}" if has_patches else f"fix:{number + 1}")
        case state if state in STAGES_BY_STATE:
            return _find_missing_work(view, STAGES_BY_STATE[state][0]) or STAGES_BY_STATE[state][1]
        case _:
            return None


def make_validation_work(view: PipelineView) -> StepWork:
    """Make the next validation of the worktree."""
    return _make_work(f"validate:{_count_steps(view.done, 'validate') + 1}")


def find_publication_work(view: PipelineView) -> StepWork | None:
    """Return the step that is missing for a request of what was validated last; None if it is open.

    A commit made before the last validation does not count: the worktree may have changed since.
    The committing worker knows what is committed already.
    """
    last = _find_last_step(view.done, "apply", "validate", "commit", "request").partition(":")[0]
    if last == "request":
        return None
    name = "request" if last == "commit" else "commit"
    return _make_work(_format_step(name, _count_steps(view.done, name) + 1))


def find_next_state(view: PipelineView, work: StepWork, facts: Mapping[str, Any]) -> RunState | None:
    """Return the state after a step that has just been done; None if the state stays."""
    next_view = PipelineView(view.state, {**view.done, work.step: facts}, view.config)
    if view.state is RunState.READY_FOR_PR:
        if work.kind.name == "validate":
            return None if facts["ok"] else RunState.VALIDATING
        return RunState.PR_OPENED if work.kind.name == "request" else None
    if view.state is RunState.FIXING:
        return None if work.kind.name == "fix" and facts.get("patch_ids") else RunState.VALIDATING
    action = find_next_action(next_view)
    return action if isinstance(action, RunState) and view.state not in PUBLISHED_STATES else None


PUBLISHED_STATES = frozenset({RunState.PR_OPENED, RunState.DONE})
"""States in which a run has reached its goal: a validation of the worktree changes nothing any more."""


def make_rewind_step(view: PipelineView) -> str:
    """Return the id of the step that records patches that no longer fit the worktree."""
    return f"rewind:{_count_steps(view.done, 'rewind') + 1}"


def _find_missing_work(view: PipelineView, steps: Sequence[str]) -> StepWork | None:
    return next((_make_work(step) for step in steps if step not in view.done), None)


def _make_work(step: str) -> StepWork:
    name, _, scope = step.partition(":")
    return StepWork(step, STEP_KINDS[name], scope)


def _format_step(name: str, number: int) -> str:
    return name if number == 1 else f"{name}:{number}"


def _count_steps(done: Mapping[str, Any], name: str) -> int:
    return sum(step.partition(":")[0] == name for step in done)


def _find_last_step(done: Mapping[str, Any], *names: str) -> str:
    return next((step for step in reversed(list(done)) if step.partition(":")[0] in names), "")


_NEXT_CALL_HINTS: Final[Mapping[RunState, str]] = {
    RunState.VALIDATING: "Run the gates with launch_validate, then fix what they find with launch_fix_next.",
    RunState.READY_FOR_PR: "Continue with launch_open_pr.",
    RunState.DONE: "The run is published (see its artifact pr.json); start another run for further changes.",
    RunState.FAILED: "launch_get_status shows the issue that ended it; start another run.",
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
        allowed = [state for state in STATE_ORDER if state not in TERMINAL_STATES]
    else:
        allowed = [required] if exact else [state for state in STATE_ORDER if has_reached(state, required)]
    if run.state not in allowed or (run.state in TERMINAL_STATES and not allow_done):
        raise make_illegal_state_error(run, f"it is {run.state}", allowed)


def make_illegal_state_error(run: Run, reason: str, allowed: Iterable[RunState]) -> ToolError:
    """Return the error of a run whose state does not allow the call."""
    return ToolError(
        ErrorCode.ILLEGAL_STATE,
        f"{run.run_id} cannot do this now: {reason}",
        hint=_NEXT_CALL_HINTS.get(run.state, "launch_resume continues the run to its next stop."),
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
                f"{run.run_id} cannot do this now: {meaning} no longer exists",
                hint="Start another run."
                if run.state in TERMINAL_STATES
                else "Restore it, for example by mounting the storage of the runs, or start "
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
