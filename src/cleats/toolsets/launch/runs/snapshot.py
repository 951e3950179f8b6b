"""The snapshot of a run, derived from its events alone.

`fold_event` is pure, and replaying the log from the start gives the snapshot that is stored with
the run, byte for byte.
"""

from collections.abc import Iterable, Mapping
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
    """Return the snapshot after one more event; events of other types do not change it.

    Raises:
        IllegalTransition: the event's change of state is not a legal transition.
    """
    payload = event.payload
    match event.type:
        case "RUN_CREATED":
            sections = dict.fromkeys(payload["required_sections"], SectionState.NOT_STARTED.value)
            changes: Snapshot = {"run_state": RunState.CREATED.value, "section_states": sections}
        case "RUN_STATE_CHANGED":
            changes = {"run_state": _check_state_change(snapshot, payload).value}
        case "SECTION_STATE_CHANGED":
            state = SectionState(payload["new_state"]).value
            changes = {"section_states": {**snapshot["section_states"], payload["section"]: state}}
        case "ARTIFACT_WRITTEN":
            fields = {name: payload[name] for name in ("path", "sha256", "schema_id", "writer_worker")}
            entry = {**fields, "ts": event.ts, "event_id": event.event_id}
            changes = {"artifacts_index": {**snapshot["artifacts_index"], payload["name"]: entry}}
        case "WORK_ITEM_STARTED":
            fields = {name: payload[name] for name in ("work_item_id", "worker", "attempt", "scope_key", "inputs")}
            item = {**fields, "status": "running", "outputs": [], "started_at": event.ts}
            changes = {"work_items": [*snapshot["work_items"], item]}
        case "WORK_ITEM_FINISHED" | "WORK_ITEM_FAILED":
            status, result = ("finished", "outputs") if event.type == "WORK_ITEM_FINISHED" else ("failed", "error")
            end = {"status": status, result: payload[result], "finished_at": event.ts}
            changes = {"work_items": _update_item(snapshot["work_items"], "work_item_id", payload, end)}
        case "ISSUE_OPENED":
            issue = payload["issue"]
            other_issues = [known for known in snapshot["issues"] if known["issue_id"] != issue["issue_id"]]
            changes = {"issues": [*other_issues, issue]}
        case "ISSUE_RESOLVED":
            changes = {"issues": _update_item(snapshot["issues"], "issue_id", payload, {"status": "RESOLVED"})}
        case _:
            changes = {}
    return {**snapshot, **changes}


def _check_state_change(snapshot: Snapshot, payload: Mapping[str, Any]) -> RunState:
    old, new = RunState(payload["old_state"]), RunState(payload["new_state"])
    if old is not get_state(snapshot):
        raise states.IllegalTransition(old, new)
    states.check_transition(old, new)
    return new


def _update_item(
    items: list[Snapshot], key: str, payload: Mapping[str, Any], changes: Mapping[str, Any]
) -> list[Snapshot]:
    return [{**item, **changes} if item[key] == payload[key] else item for item in items]


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
