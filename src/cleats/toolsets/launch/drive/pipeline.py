"""The pipeline as data and pure functions: the next step of a run, and the state after it.

A step is identified by its id and is recorded once. Where a kind of step may be needed again
(another validation, another fix, a link after the worktree changed), the id has a number:

    clone  inventory  facts  snippets  plan  draft:<section>  link  apply
    validate:<n>  fix:<n>  apply:fix:<n>  rewind:<n>  commit  request

So the next action follows from the state and the recorded steps alone, whichever process asks, and
after any crash.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cleats.toolsets.launch.runs.states import RunState

SECTION_ORDER = ("products", "docs", "reference", "kb", "blog")
"""The order in which sections are written."""


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind of step and the worker that does it."""

    name: str
    worker: str
    reads: tuple[str, ...] = ("site", "repo")
    """The checkouts that must exist: without the source no gate could prove a claim."""


STEP_KINDS: Mapping[str, StepKind] = {
    kind.name: kind
    for kind in (
        StepKind("clone", "W1", reads=()),
        StepKind("inventory", "W1"),
        StepKind("facts", "W2"),
        StepKind("snippets", "W3"),
        StepKind("plan", "W4"),
        StepKind("draft", "W5"),
        StepKind("link", "W6"),
        StepKind("apply", "W6"),
        StepKind("validate", "W7"),
        StepKind("fix", "W8"),
        StepKind("commit", "W9", reads=("site",)),
        StepKind("request", "W9", reads=("site",)),
    )
}

WORKER_MODULES: Mapping[str, str] = {name: f"cleats.toolsets.launch.workers.{name}" for name in STEP_KINDS}
"""The module of each kind of step."""

WORKER_NAMES = frozenset(kind.worker for kind in STEP_KINDS.values())
"""The workers that open an issue when a step fails, in addition to the gates."""

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
            return _find_missing_work(view, _list_link_steps(view)) or RunState.VALIDATING
        case RunState.VALIDATING:
            return make_validation_work(view) if view.report is None else _find_state_after_report(view.report)
        case RunState.FIXING:
            return _find_fix_work(view)
        case state if state in STAGES_BY_STATE:
            steps, next_state = list(STAGES_BY_STATE[state][0]), STAGES_BY_STATE[state][1]
            return _find_missing_work(view, steps) or next_state
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
    if view.state is RunState.FIXING and work.kind.name == "fix" and facts.get("patch_ids"):
        return None
    if view.state is RunState.FIXING:
        return RunState.VALIDATING
    action = find_next_action(next_view)
    return action if isinstance(action, RunState) and view.state not in _PUBLISHED_STATES else None


_PUBLISHED_STATES = frozenset({RunState.PR_OPENED, RunState.DONE})
"""States in which a validation of the worktree changes nothing any more."""


def make_rewind_step(view: PipelineView) -> str:
    """Return the id of the step that records patches that no longer fit the worktree."""
    return f"rewind:{_count_steps(view.done, 'rewind') + 1}"


def _find_state_after_report(report: Mapping[str, Any]) -> RunState | None:
    return RunState.READY_FOR_PR if report["ok"] else None


def _list_link_steps(view: PipelineView) -> list[str]:
    number = _count_steps(view.done, "rewind") + 1
    return [_format_step("link", number), _format_step("apply", number)]


def _find_fix_work(view: PipelineView) -> StepWork:
    number = view.fix_count
    is_unapplied = _find_last_step(view.done, "fix", "apply", "rewind") == f"fix:{number}"
    if is_unapplied and view.done[f"fix:{number}"].get("patch_ids"):
        return _make_work(f"apply:fix:{number}")
    return _make_work(f"fix:{number + 1}")


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
