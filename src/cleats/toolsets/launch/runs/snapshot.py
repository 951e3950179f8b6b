"""The snapshot of a run, derived from its events alone.

`fold_event` is pure, and replaying the log from the start gives the snapshot that is stored with
the run, byte for byte.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, TypeAlias

from cleats.toolsets.launch.runs import states
from cleats.toolsets.launch.runs.events import RunEvent
from cleats.toolsets.launch.runs.issues import Issue
from cleats.toolsets.launch.runs.states import RunState, SectionState

SCHEMA_VERSION = "1.0"

Snapshot: TypeAlias = dict[str, Any]
"""A document of the schema `snapshot`. Folding creates a new one and leaves the old one unchanged."""


def make_empty_snapshot(run_id: str) -> Snapshot:
    """Return the snapshot of a run before its first event."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "run_state": RunState.CREATED.value,
        "section_states": {},
        "artifacts_index": {},
        "work_items": [],
        "issues": [],
    }


def replay_events(run_id: str, events: Iterable[RunEvent]) -> Snapshot:
    """Return the snapshot after all events of a log."""
    return reduce(fold_event, events, make_empty_snapshot(run_id))


def is_valid_snapshot(document: Any) -> bool:
    """Return whether a stored document is a valid snapshot."""
    return (
        isinstance(document, dict)
        and make_empty_snapshot("").keys() <= document.keys()
        and str(document["run_state"]) in RunState.__members__
        and all(isinstance(document[name], expected_type) for name, expected_type in _FIELD_TYPES.items())
    )


_FIELD_TYPES = {"section_states": dict, "artifacts_index": dict, "work_items": list, "issues": list}


def fold_event(snapshot: Snapshot, event: RunEvent) -> Snapshot:
    """Return the snapshot after one more event.

    Raises:
        IllegalTransition: the event's change of state is not a legal transition.
    """
    handler = _EVENT_HANDLERS.get(event.type)
    return {**snapshot, **handler(snapshot, event, event.payload)} if handler else snapshot


def get_state(snapshot: Mapping[str, Any]) -> RunState:
    """Return the state of the run."""
    return RunState(snapshot["run_state"])


def list_open_issues(snapshot: Mapping[str, Any]) -> list[Issue]:
    """Return the open issues, the worst first."""
    issues = [Issue.from_json(document) for document in snapshot["issues"] if document["status"] != "RESOLVED"]
    return sorted(issues, key=lambda issue: issue.sort_key)


def build_status(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Build the RunStatus of spec e."""
    return {
        "run_id": snapshot["run_id"],
        "state": snapshot["run_state"],
        "section_states": snapshot["section_states"],
        "open_issues": [
            {"issue_id": issue.issue_id, "severity": issue.severity, "gate": issue.gate, "title": issue.title}
            for issue in list_open_issues(snapshot)
        ],
        "artifacts": [
            {"name": name, "sha256": entry["sha256"]} for name, entry in sorted(snapshot["artifacts_index"].items())
        ],
    }


Payload: TypeAlias = Mapping[str, Any]
EventHandler: TypeAlias = Callable[[Snapshot, RunEvent, Payload], Snapshot]


def _apply_run_created(_snapshot: Snapshot, _event: RunEvent, payload: Payload) -> Snapshot:
    section_states = dict.fromkeys(payload["required_sections"], SectionState.NOT_STARTED.value)
    return {"run_state": RunState.CREATED.value, "section_states": section_states}


def _apply_state_changed(snapshot: Snapshot, _event: RunEvent, payload: Payload) -> Snapshot:
    old, new = RunState(payload["old_state"]), RunState(payload["new_state"])
    if old is not get_state(snapshot):
        raise states.IllegalTransition(old, new)
    states.check_transition(old, new)
    return {"run_state": new.value}


def _apply_section_changed(snapshot: Snapshot, _event: RunEvent, payload: Payload) -> Snapshot:
    state = SectionState(payload["new_state"]).value
    return {"section_states": {**snapshot["section_states"], payload["section"]: state}}


def _apply_artifact_written(snapshot: Snapshot, event: RunEvent, payload: Payload) -> Snapshot:
    fields = {name: payload[name] for name in ("path", "sha256", "schema_id", "writer_worker")}
    entry = {**fields, "ts": event.ts, "event_id": event.event_id}
    return {"artifacts_index": {**snapshot["artifacts_index"], payload["name"]: entry}}


def _apply_item_started(snapshot: Snapshot, event: RunEvent, payload: Payload) -> Snapshot:
    fields = {name: payload[name] for name in ("work_item_id", "worker", "attempt", "scope_key", "inputs")}
    item = {**fields, "status": "running", "outputs": [], "started_at": event.ts}
    return {"work_items": [*snapshot["work_items"], item]}


def _apply_item_ended(snapshot: Snapshot, event: RunEvent, payload: Payload) -> Snapshot:
    status, result = ("finished", "outputs") if event.type == "WORK_ITEM_FINISHED" else ("failed", "error")
    changes = {"status": status, result: payload[result], "finished_at": event.ts}
    items = [
        {**item, **changes} if item["work_item_id"] == payload["work_item_id"] else item
        for item in snapshot["work_items"]
    ]
    return {"work_items": items}


def _apply_issue_opened(snapshot: Snapshot, _event: RunEvent, payload: Payload) -> Snapshot:
    issue = payload["issue"]
    other_issues = [known_issue for known_issue in snapshot["issues"] if known_issue["issue_id"] != issue["issue_id"]]
    return {"issues": [*other_issues, issue]}


def _apply_issue_resolved(snapshot: Snapshot, _event: RunEvent, payload: Payload) -> Snapshot:
    issues = [
        {**issue, "status": "RESOLVED"} if issue["issue_id"] == payload["issue_id"] else issue
        for issue in snapshot["issues"]
    ]
    return {"issues": issues}


_EVENT_HANDLERS: Mapping[str, EventHandler] = {
    "RUN_CREATED": _apply_run_created,
    "RUN_STATE_CHANGED": _apply_state_changed,
    "SECTION_STATE_CHANGED": _apply_section_changed,
    "ARTIFACT_WRITTEN": _apply_artifact_written,
    "WORK_ITEM_STARTED": _apply_item_started,
    "WORK_ITEM_FINISHED": _apply_item_ended,
    "WORK_ITEM_FAILED": _apply_item_ended,
    "ISSUE_OPENED": _apply_issue_opened,
    "ISSUE_RESOLVED": _apply_issue_resolved,
}
"""Handlers by event type. Events of other types do not change the snapshot."""
