"""What is written into the log as a step begins, ends or fails. Pure: runs in, drafts out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch import artifacts, snapshot
from cleats.toolsets.launch.drive.steps import WORKERS, View, Work, following
from cleats.toolsets.launch.events import Draft
from cleats.toolsets.launch.issues import BLOCKING, Issue
from cleats.toolsets.launch.snapshot import Snapshot
from cleats.toolsets.launch.states import SectionState, State
from cleats.toolsets.launch.store.journal import to_state


@dataclass(frozen=True, slots=True)
class Result:
    """What a worker handed back."""

    facts: Mapping[str, Any]
    artifacts: Mapping[str, str]
    events: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One attempt at a step."""

    work_item_id: str
    attempt: int

    @classmethod
    def next(cls, known: Snapshot, work: Work) -> "Item":
        """The attempt after those that are known."""
        same = [each for each in known["work_items"] if each["scope_key"] == work.step]
        attempt = len(same) + 1
        name = f"{known['run_id']}:{work.kind.worker}:{attempt}:{work.step}"
        return cls(name, attempt)


def created(config_hash: str, slug: str, sections: Iterable[str]) -> list[Draft]:
    """A run begins."""
    return [
        Draft(
            "RUN_CREATED",
            {
                "product_slug": slug,
                "config_hash": config_hash,
                "required_sections": list(sections),
            },
        )
    ]


def started(known: Snapshot, work: Work, item: Item) -> list[Draft]:
    """A step begins; what a lost driver left running is closed first."""
    payload = {
        "work_item_id": item.work_item_id,
        "worker": work.kind.worker,
        "attempt": item.attempt,
        "scope_key": work.step,
        "inputs": sorted(known["artifacts_index"]),
    }
    return [*interrupted(known), Draft("WORK_ITEM_STARTED", payload)]


def interrupted(known: Snapshot) -> list[Draft]:
    """What nobody works on any more, though the log says so."""
    return _stopped(
        known, ToolError(ErrorCode.CANCELLED, "The step was interrupted.", retryable=True)
    )


def cancelled(known: Snapshot) -> list[Draft]:
    """A run is cancelled, and with it whatever is done for it."""
    over = _stopped(known, ToolError(ErrorCode.CANCELLED, "The run was cancelled."))
    return [*over, Draft("RUN_CANCELLED", {})]


def _stopped(known: Snapshot, error: ToolError) -> list[Draft]:
    return [
        Draft("WORK_ITEM_FAILED", {"work_item_id": each["work_item_id"], "error": told(error)})
        for each in known["work_items"]
        if each["status"] == "running"
    ]


def finished(
    known: Snapshot,
    view: View,
    work: Work,
    item: Item,
    result: Result,
    *,
    documents: Mapping[str, Any],
) -> list[Draft]:
    """A step ends well: its artifacts, what it found, and what follows.

    `documents` has the report of a validation, the plan of the pages, and for the validation
    after a fix the report before it.
    """
    kept = [draft for draft in result.events if not draft.type.startswith("ISSUE_")]
    drafts = [*kept, *written(work, result.artifacts)]
    if work.kind.name == "clone":
        drafts.append(Draft("INPUTS_CLONED", dict(result.facts)))
    if work.kind.name == "request":
        drafts.append(Draft("PR_OPENED", dict(result.facts)))
    drafts += _healed(known, work)
    if work.kind.name == "validate":
        drafts += _compared(known, documents["report"])
    drafts += _sections(known, view, work, documents)
    outputs = sorted(result.artifacts)
    drafts.append(
        Draft("WORK_ITEM_FINISHED", {"work_item_id": item.work_item_id, "outputs": outputs})
    )
    if work.kind.name == "validate" and (error := _spoilt(known, view, documents)) is not None:
        drafts += doomed(view.state, error)
    elif (then := following(view, work, result.facts)) is not None:
        drafts.append(to_state(view.state, then))
    return drafts


def failed(known: Snapshot, work: Work, item: Item, error: ToolError) -> list[Draft]:
    """A step ends badly, and the run stays where it is."""
    drafts = [Draft("WORK_ITEM_FAILED", {"work_item_id": item.work_item_id, "error": told(error)})]
    issue = Issue.make(
        gate=work.kind.worker,
        severity="blocker",
        message=error.message or error.code.name,
        error_code=_cause(error),
        suggested_fix=error.hint,
    )
    if issue.issue_id not in {each.issue_id for each in snapshot.open_issues(known)}:
        drafts.append(Draft("ISSUE_OPENED", {"issue": issue.as_json()}))
    return drafts


def _cause(error: ToolError) -> str:
    """The worker's own code for what went wrong, which says more than the code of the reply."""
    details = error.details if isinstance(error.details, Mapping) else {}
    return str(details.get("error_code") or error.code.name)


def doomed(state: State, error: ToolError) -> list[Draft]:
    """A run ends badly."""
    return [Draft("RUN_FAILED", {"error": told(error)}), to_state(state, State.FAILED)]


def told(error: ToolError) -> dict[str, Any]:
    """An error as the log has it."""
    return {"code": error.code.name, "message": error.message, "retryable": error.retryable}


def written(work: Work, made: Mapping[str, str]) -> list[Draft]:
    """What a worker wrote: names and hashes."""
    return [
        Draft(
            "ARTIFACT_WRITTEN",
            {
                "name": name,
                "path": f"objects/{sha256}",
                "sha256": sha256,
                "schema_id": artifacts.schema_of(name) or artifacts.content_type(name),
                "writer_worker": work.kind.worker,
            },
        )
        for name, sha256 in sorted(made.items())
    ]


def _healed(known: Snapshot, work: Work) -> list[Draft]:
    """The failures of a worker are over once it has succeeded."""
    return [
        Draft("ISSUE_RESOLVED", {"issue_id": issue.issue_id})
        for issue in snapshot.open_issues(known)
        if issue.gate == work.kind.worker
    ]


def _compared(known: Snapshot, report: Mapping[str, Any]) -> list[Draft]:
    """What a report finds that was not known, and what it does not find any more."""
    now = {each["issue_id"]: each for each in report["issues"]}
    before = {each.issue_id for each in snapshot.open_issues(known) if each.gate not in WORKERS}
    gone = sorted(before - now.keys())
    return [
        *(Draft("ISSUE_RESOLVED", {"issue_id": issue_id}) for issue_id in gone),
        *(Draft("ISSUE_OPENED", {"issue": now[new]}) for new in now if new not in before),
    ]


def _spoilt(known: Snapshot, view: View, documents: Mapping[str, Any]) -> ToolError | None:
    """Why the fix that a validation has judged ends the run: a gate without a blocker has one now.

    Only for what is the doing of the fix: not in a file that somebody edited, not without a place
    as when a gate was too slow, and not when the run has had the same blocker before.
    """
    if view.fix_to_judge is None:
        return None
    before, after = documents["before"], documents["report"]
    issue_id = view.fix_to_judge["issue_id"]
    blocked = {each["gate"] for each in before["issues"] if each["severity"] == "blocker"}
    own = {each["gate"] for each in before["issues"] if each["issue_id"] == issue_id}
    had = {each["issue_id"] for each in known["issues"]}
    edited = {path for each in (before, after) for path in each.get("manual_edited_files", ())}
    for issue in map(Issue.of, after["issues"]):
        new = issue.issue_id not in had and issue.gate not in blocked | own
        placed = issue.path and issue.path not in edited
        if new and placed and issue.severity == "blocker":
            return ToolError(
                ErrorCode.GATE_FAILED,
                f"the fix of {issue_id} opened a blocker in {issue.gate}: {issue.title}",
            )
    return None


def _sections(known: Snapshot, view: View, work: Work, documents: Mapping[str, Any]) -> list[Draft]:
    match work.kind.name:
        case "plan":
            wanted = dict.fromkeys(view.sections, SectionState.OUTLINED)
        case "draft":
            wanted = {work.scope: SectionState.DRAFTED}
        case "apply":
            wanted = dict.fromkeys(view.sections, SectionState.MERGED_IN_WORKTREE)
        case "validate" if view.state not in {State.PR_OPENED, State.DONE}:
            blocked = _blocked(documents["report"], documents["plan"])
            wanted = {
                section: SectionState.BLOCKED if section in blocked else SectionState.DONE
                for section in view.sections
            }
        case _:
            wanted = {}
    now = known["section_states"]
    return [
        Draft(
            "SECTION_STATE_CHANGED",
            {"section": section, "old_state": now.get(section), "new_state": state.value},
        )
        for section, state in wanted.items()
        if now.get(section) != state.value
    ]


def _blocked(report: Mapping[str, Any], plan: Mapping[str, Any]) -> set[str]:
    """The sections that something is wrong with: with a page of theirs, not with the whole."""
    home = {page["output_path"]: page["section"] for page in plan["pages"]}
    issues = [Issue.of(each) for each in report["issues"]]
    places = [
        place
        for issue in issues
        if issue.severity in BLOCKING and issue.status != "RESOLVED"
        for place in (issue.path, *issue.files)
    ]
    return {home[place] for place in places if place in home}
