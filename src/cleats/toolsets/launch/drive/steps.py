"""Which step comes next, and what state follows it: the pipeline as data and pure functions.

A step is known by its id and is recorded once. Where a kind of step may be needed again (another
validation, another fix, a link after the worktree changed), the id has a number:

    clone  inventory  facts  snippets  plan  draft:<section>  link  apply
    validate:<n>  fix:<n>  apply:fix:<n>  rewind:<n>  commit  request

So what is to be done follows from the state and from the steps that are recorded, whoever asks,
and after whatever crash.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cleats.toolsets.launch.states import State

SECTIONS = ("products", "docs", "reference", "kb", "blog")
"""The order in which sections are written."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of step, and who does it."""

    name: str
    worker: str
    reads: tuple[str, ...] = ("site", "repo")
    """The checkouts that have to be there: without the source no gate could prove a claim."""


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("clone", "W1", reads=()),
        Kind("inventory", "W1"),
        Kind("facts", "W2"),
        Kind("snippets", "W3"),
        Kind("plan", "W4"),
        Kind("draft", "W5"),
        Kind("link", "W6"),
        Kind("apply", "W6"),
        Kind("validate", "W7"),
        Kind("fix", "W8"),
        Kind("commit", "W9", reads=("site",)),
        Kind("request", "W9", reads=("site",)),
    )
}

MODULES: Mapping[str, str] = {name: f"cleats.toolsets.launch.workers.{name}" for name in KINDS}
"""The module of each kind of step."""

WORKERS = frozenset(kind.worker for kind in KINDS.values())
"""Who opens an issue when a step fails, beside the gates."""

STAGES: Mapping[State, tuple[tuple[str, ...], State]] = {
    State.CREATED: (("clone",), State.CLONED_INPUTS),
    State.CLONED_INPUTS: (("inventory",), State.INGESTED),
    State.INGESTED: (("facts", "snippets"), State.FACTS_READY),
    State.FACTS_READY: (("plan",), State.PLAN_READY),
    State.PLAN_READY: ((), State.DRAFTING),
    State.DRAFT_READY: ((), State.LINKING),
    State.PR_OPENED: ((), State.DONE),
}
"""The straight part of the way: the steps of a state and the state after them."""


@dataclass(frozen=True, slots=True)
class Work:
    """A step to do."""

    step: str
    kind: Kind
    scope: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """A run as far as the pipeline is concerned. `done` is in the order of the records."""

    state: State
    done: Mapping[str, Mapping[str, Any]]
    config: Mapping[str, Any]

    @property
    def sections(self) -> list[str]:
        """The sections to write, in their order."""
        wanted: Sequence[str] = self.config["required_sections"]
        known = [name for name in SECTIONS if name in wanted]
        return known + [name for name in wanted if name not in SECTIONS]

    @property
    def report(self) -> Mapping[str, Any] | None:
        """What the last validation said, if nothing has changed the worktree since."""
        last = _last(self.done, "validate", "apply", "rewind")
        return self.done[last] if last.startswith("validate") else None

    @property
    def fix_to_judge(self) -> Mapping[str, Any] | None:
        """What the fix returned that was applied since the last validation, if one was."""
        last = _last(self.done, "validate", "apply", "rewind")
        return self.done[last.removeprefix("apply:")] if last.startswith("apply:fix") else None

    @property
    def fixes(self) -> int:
        """How many fixes were tried."""
        return _count(self.done, "fix")

    @property
    def fixable(self) -> bool:
        """Whether the run rests in front of a report that is not ok."""
        return self.state is State.VALIDATING and self.report is not None and not self.report["ok"]


def pending(view: View) -> Work | State | None:
    """What a run does next by itself: a step, a change of state, or nothing."""
    match view.state:
        case State.DRAFTING:
            steps = [f"draft:{section}" for section in view.sections]
            return _first(view, steps) or State.DRAFT_READY
        case State.LINKING:
            return _first(view, _linking(view)) or State.VALIDATING
        case State.VALIDATING:
            return validation(view) if view.report is None else _passed(view.report)
        case State.FIXING:
            return _fixing(view)
        case state if state in STAGES:
            steps, then = list(STAGES[state][0]), STAGES[state][1]
            return _first(view, steps) or then
        case _:
            return None


def validation(view: View) -> Work:
    """The next look at the worktree."""
    return _work(f"validate:{_count(view.done, 'validate') + 1}")


def publication(view: View) -> Work | None:
    """What is missing to a request for what was validated last; None when it is open.

    A commit that was made before the last look at the worktree does not count: somebody may have
    changed it. Whoever commits knows what is committed already.
    """
    last = _last(view.done, "apply", "validate", "commit", "request").partition(":")[0]
    if last == "request":
        return None
    name = "request" if last == "commit" else "commit"
    return _work(_numbered(name, _count(view.done, name) + 1))


def following(view: View, work: Work, facts: Mapping[str, Any]) -> State | None:
    """The state after a step that has just been done; None when it stays."""
    after = View(view.state, {**view.done, work.step: facts}, view.config)
    if view.state is State.READY_FOR_PR:
        if work.kind.name == "validate":
            return None if facts["ok"] else State.VALIDATING
        return State.PR_OPENED if work.kind.name == "request" else None
    if view.state is State.FIXING and work.kind.name == "fix" and facts.get("patch_ids"):
        return None
    if view.state is State.FIXING:
        return State.VALIDATING
    then = pending(after)
    return then if isinstance(then, State) and view.state not in _ENDS else None


_ENDS = frozenset({State.PR_OPENED, State.DONE})
"""Where a look at the worktree changes nothing any more."""


def rewinding(view: View) -> str:
    """The step that notes that the worktree is not what the patches were planned for."""
    return f"rewind:{_count(view.done, 'rewind') + 1}"


def _passed(report: Mapping[str, Any]) -> State | None:
    return State.READY_FOR_PR if report["ok"] else None


def _linking(view: View) -> list[str]:
    turn = _count(view.done, "rewind") + 1
    return [_numbered("link", turn), _numbered("apply", turn)]


def _fixing(view: View) -> Work:
    number = view.fixes
    waits = _last(view.done, "fix", "apply", "rewind") == f"fix:{number}"
    if waits and view.done[f"fix:{number}"].get("patch_ids"):
        return _work(f"apply:fix:{number}")
    return _work(f"fix:{number + 1}")


def _first(view: View, steps: Sequence[str]) -> Work | None:
    return next((_work(step) for step in steps if step not in view.done), None)


def _work(step: str) -> Work:
    name, _, scope = step.partition(":")
    return Work(step, KINDS[name], scope)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}:{number}"


def _count(done: Mapping[str, Any], name: str) -> int:
    return sum(step.partition(":")[0] == name for step in done)


def _last(done: Mapping[str, Any], *names: str) -> str:
    return next((step for step in reversed(list(done)) if step.partition(":")[0] in names), "")
