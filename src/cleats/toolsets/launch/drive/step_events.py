"""The events that are logged when a step begins, ends or fails. Pure: snapshots in, drafts out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drive.pipeline import PUBLISHED_STATES, STEP_KINDS, PipelineView, StepWork, find_next_state
from cleats.toolsets.launch.runs import artifacts, snapshot
from cleats.toolsets.launch.runs.events import EventDraft, RunEvent
from cleats.toolsets.launch.runs.issues import BLOCKING_SEVERITIES, Issue
from cleats.toolsets.launch.runs.job import StepResult, WorkerError, encode_failure
from cleats.toolsets.launch.runs.snapshot import Snapshot
from cleats.toolsets.launch.runs.states import RunState, SectionState
from cleats.toolsets.launch.store.model import make_state_event


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One attempt at a step."""

    work_item_id: str
    attempt: int

    @classmethod
    def make_next(cls, run_snapshot: Snapshot, work: StepWork) -> "WorkItem":
        """Make the attempt that follows those in the snapshot."""
        attempt = 1 + sum(item["scope_key"] == work.step for item in run_snapshot["work_items"])
        return cls(f"{run_snapshot['run_id']}:{work.kind.worker}:{attempt}:{work.step}", attempt)


def make_start_events(run_snapshot: Snapshot, work: StepWork, item: WorkItem) -> list[EventDraft]:
    """Make the events of a step that begins, after closing the items of a lost driver."""
    payload = {
        "work_item_id": item.work_item_id,
        "worker": work.kind.worker,
        "attempt": item.attempt,
        "scope_key": work.step,
        "inputs": sorted(run_snapshot["artifacts_index"]),
    }
    interruption = ToolError(ErrorCode.CANCELLED, "The step was interrupted.", retryable=True)
    return [*_make_stop_events(run_snapshot, interruption), EventDraft("WORK_ITEM_STARTED", payload)]


def make_cancellation_events(run_snapshot: Snapshot) -> list[EventDraft]:
    """Make the events of a cancelled run, whose running items end with it."""
    stopped_items = _make_stop_events(run_snapshot, ToolError(ErrorCode.CANCELLED, "The run was cancelled."))
    return [*stopped_items, EventDraft("RUN_CANCELLED", {})]


def _make_stop_events(run_snapshot: Snapshot, error: ToolError) -> list[EventDraft]:
    running = [item["work_item_id"] for item in run_snapshot["work_items"] if item["status"] == "running"]
    return [make_item_failure_event(work_item_id, error) for work_item_id in running]


def make_finish_events(
    run_snapshot: Snapshot,
    view: PipelineView,
    work: StepWork,
    item: WorkItem,
    result: StepResult,
    *,
    documents: Mapping[str, Any],
) -> list[EventDraft]:
    """Make the events of a successful step: its artifacts, issues and the change of state.

    `documents` has the report of a validation, the page plan, and for the validation after a fix the report before it.
    """
    worker_events = [draft for draft in result.events if not draft.type.startswith("ISSUE_")]
    drafts = [*worker_events, *make_artifact_events(work, result.artifacts)]
    if work.kind.name == "clone":
        drafts.append(EventDraft("INPUTS_CLONED", dict(result.facts)))
    if work.kind.name == "request":
        drafts.append(EventDraft("PR_OPENED", dict(result.facts)))
    drafts += [  # the worker has succeeded after all
        EventDraft("ISSUE_RESOLVED", {"issue_id": issue.issue_id})
        for issue in snapshot.list_open_issues(run_snapshot)
        if issue.gate == work.kind.worker
    ]
    if work.kind.name == "validate":
        drafts += _make_issue_events(run_snapshot, documents["report"])
    drafts += _make_section_events(run_snapshot, view, work, documents)
    outputs = sorted(result.artifacts)
    drafts.append(EventDraft("WORK_ITEM_FINISHED", {"work_item_id": item.work_item_id, "outputs": outputs}))
    if work.kind.name == "validate" and (error := _find_fix_regression(run_snapshot, view, documents)) is not None:
        drafts += make_run_failure_events(view.state, error)
    elif (next_state := find_next_state(view, work, result.facts)) is not None:
        drafts.append(make_state_event(view.state, next_state))
    return drafts


def make_item_failure_event(work_item_id: str, error: ToolError) -> EventDraft:
    """Make the event of an attempt that failed."""
    document = {"code": error.code.name, "message": error.message, "retryable": error.retryable}
    return EventDraft("WORK_ITEM_FAILED", {"work_item_id": work_item_id, "error": document})


def make_failure_issue_events(run_snapshot: Snapshot, work: StepWork, error: ToolError) -> list[EventDraft]:
    """Make the event of the issue that a failed step opens, unless it is open already."""
    details = error.details if isinstance(error.details, Mapping) else {}
    issue = Issue.create(
        gate=work.kind.worker,
        severity="blocker",
        message=error.message or error.code.name,
        # The worker's own error code is more specific than the code of the reply.
        error_code=str(details.get("error_code") or error.code.name),
        suggested_fix=error.hint,
    )
    open_ids = {open_issue.issue_id for open_issue in snapshot.list_open_issues(run_snapshot)}
    return [] if issue.issue_id in open_ids else [EventDraft("ISSUE_OPENED", {"issue": issue.as_json()})]


def make_run_failure_events(state: RunState, error: ToolError) -> list[EventDraft]:
    """Make the events of a run that fails; `find_failure` reads the error from them."""
    return [EventDraft("RUN_FAILED", {"error": encode_failure(error)}), make_state_event(state, RunState.FAILED)]


def find_failure(events: Iterable[RunEvent]) -> ToolError:
    """Return the error that ended a run, from the log of the run."""
    return WorkerError([event.payload["error"] for event in events if event.type == "RUN_FAILED"][-1])


def make_artifact_events(work: StepWork, hashes_by_name: Mapping[str, str]) -> list[EventDraft]:
    """Make the events of the artifacts that a worker wrote."""
    return [
        EventDraft(
            "ARTIFACT_WRITTEN",
            {
                "name": name,
                "path": f"objects/{sha256}",
                "sha256": sha256,
                "schema_id": artifacts.find_schema_id(name) or artifacts.guess_content_type(name),
                "writer_worker": work.kind.worker,
            },
        )
        for name, sha256 in sorted(hashes_by_name.items())
    ]


def _make_issue_events(run_snapshot: Snapshot, report: Mapping[str, Any]) -> list[EventDraft]:
    """Make the events of the issues that a report opens and of those that it resolves."""
    workers = {kind.worker for kind in STEP_KINDS.values()}  # they open an issue, too, when a step fails
    issues_by_id = {issue["issue_id"]: issue for issue in report["issues"]}
    known_ids = {issue.issue_id for issue in snapshot.list_open_issues(run_snapshot) if issue.gate not in workers}
    resolved_ids = sorted(known_ids - issues_by_id.keys())
    resolved = [EventDraft("ISSUE_RESOLVED", {"issue_id": resolved_id}) for resolved_id in resolved_ids]
    new_issues = [issue for issue_id, issue in issues_by_id.items() if issue_id not in known_ids]
    return [*resolved, *(EventDraft("ISSUE_OPENED", {"issue": issue}) for issue in new_issues)]


def _find_fix_regression(run_snapshot: Snapshot, view: PipelineView, documents: Mapping[str, Any]) -> ToolError | None:
    """Return the error of a fix that ends the run: a gate without blockers has one after it.

    Only blockers that the fix caused count: not in a file that was edited by hand, not without a
    path as when a gate was too slow, and not if the run has had the same blocker before.
    """
    if view.unjudged_fix is None:
        return None
    before, after = documents["before"], documents["report"]
    issue_id = view.unjudged_fix["issue_id"]
    blocked_gates = {document["gate"] for document in before["issues"] if document["severity"] == "blocker"}
    fixed_gates = {document["gate"] for document in before["issues"] if document["issue_id"] == issue_id}
    earlier_ids = {document["issue_id"] for document in run_snapshot["issues"]}
    edited_paths = {path for document in (before, after) for path in document.get("manual_edited_files", ())}
    for issue in map(Issue.from_json, after["issues"]):
        is_new = issue.issue_id not in earlier_ids and issue.gate not in blocked_gates | fixed_gates
        is_unedited = issue.path and issue.path not in edited_paths
        if is_new and is_unedited and issue.severity == "blocker":
            return ToolError(
                ErrorCode.GATE_FAILED, f"the fix of {issue_id} caused a blocker in {issue.gate}: {issue.title}"
            )
    return None


def _make_section_events(
    run_snapshot: Snapshot, view: PipelineView, work: StepWork, documents: Mapping[str, Any]
) -> list[EventDraft]:
    match work.kind.name:
        case "plan":
            new_states = dict.fromkeys(view.sections, SectionState.OUTLINED)
        case "draft":
            new_states = {work.scope: SectionState.DRAFTED}
        case "apply":
            new_states = dict.fromkeys(view.sections, SectionState.MERGED_IN_WORKTREE)
        case "validate" if view.state not in PUBLISHED_STATES:
            blocked = _find_blocked_sections(documents["report"], documents["plan"])
            new_states = {
                section: SectionState.BLOCKED if section in blocked else SectionState.DONE for section in view.sections
            }
        case _:
            new_states = {}
    section_states = run_snapshot["section_states"]
    return [
        EventDraft(
            "SECTION_STATE_CHANGED",
            {"section": section, "old_state": section_states.get(section), "new_state": state.value},
        )
        for section, state in new_states.items()
        if section_states.get(section) != state.value
    ]


def _find_blocked_sections(report: Mapping[str, Any], plan: Mapping[str, Any]) -> set[str]:
    """Return the sections that have a page with a blocking issue."""
    section_by_path = {page["output_path"]: page["section"] for page in plan["pages"]}
    return {
        section_by_path[path]
        for issue in map(Issue.from_json, report["issues"])
        if issue.severity in BLOCKING_SEVERITIES and issue.status != "RESOLVED"
        for path in (issue.path, *issue.files)
        if path in section_by_path
    }
