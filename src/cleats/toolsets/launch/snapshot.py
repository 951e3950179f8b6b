"""What a run is, told by its events and by nothing else.

`fold` is pure, and replaying the log from the start gives the snapshot that is stored with the
run, byte for byte.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from cleats.toolsets.launch import states
from cleats.toolsets.launch.events import Event
from cleats.toolsets.launch.issues import Issue
from cleats.toolsets.launch.states import SectionState, State

SCHEMA_VERSION = "1.0"

Snapshot: TypeAlias = dict[str, Any]
"""A document of the schema `snapshot`. Folding makes a new one and leaves the old as it is."""


def empty(run_id: str) -> Snapshot:
    """What is known of a run before its first event."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "run_state": State.CREATED.value,
        "section_states": {},
        "artifacts_index": {},
        "work_items": [],
        "issues": [],
    }


def replay(run_id: str, events: Iterable[Event]) -> Snapshot:
    """The snapshot after a whole log."""
    snapshot = empty(run_id)
    for event in events:
        snapshot = fold(snapshot, event)
    return snapshot


def usable(document: Any) -> bool:
    """Whether a document that was kept can be taken for a snapshot."""
    return (
        isinstance(document, dict)
        and empty("").keys() <= document.keys()
        and str(document["run_state"]) in State.__members__
        and all(isinstance(document[name], kind) for name, kind in _KINDS.items())
    )


_KINDS = {"section_states": dict, "artifacts_index": dict, "work_items": list, "issues": list}


def fold(snapshot: Snapshot, event: Event) -> Snapshot:
    """The snapshot after one more event.

    Raises:
        IllegalTransition: the event changes the state along no edge.
    """
    change = _CHANGES.get(event.type)
    if change is None:
        return snapshot
    return {**snapshot, **change(snapshot, event, event.payload)}


def state_of(snapshot: Mapping[str, Any]) -> State:
    """The state of the run."""
    return State(snapshot["run_state"])


def open_issues(snapshot: Mapping[str, Any]) -> list[Issue]:
    """What is wrong now, the worst first."""
    found = [Issue.of(each) for each in snapshot["issues"] if each["status"] != "RESOLVED"]
    return sorted(found, key=lambda issue: issue.sort_key)


def status_of(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """The RunStatus of spec e."""
    return {
        "run_id": snapshot["run_id"],
        "state": snapshot["run_state"],
        "section_states": snapshot["section_states"],
        "open_issues": [
            {
                "issue_id": issue.issue_id,
                "severity": issue.severity,
                "gate": issue.gate,
                "title": issue.title,
            }
            for issue in open_issues(snapshot)
        ],
        "artifacts": [
            {"name": name, "sha256": entry["sha256"]}
            for name, entry in sorted(snapshot["artifacts_index"].items())
        ],
    }


Payload: TypeAlias = Mapping[str, Any]
Change: TypeAlias = Callable[[Snapshot, Event, Payload], Snapshot]


def _created(_snapshot: Snapshot, _event: Event, payload: Payload) -> Snapshot:
    waiting = dict.fromkeys(payload["required_sections"], SectionState.NOT_STARTED.value)
    return {"run_state": State.CREATED.value, "section_states": waiting}


def _state(snapshot: Snapshot, _event: Event, payload: Payload) -> Snapshot:
    old, new = State(payload["old_state"]), State(payload["new_state"])
    if old is not state_of(snapshot):
        raise states.IllegalTransition(old, new)
    states.check(old, new)
    return {"run_state": new.value}


def _section(snapshot: Snapshot, _event: Event, payload: Payload) -> Snapshot:
    state = SectionState(payload["new_state"]).value
    return {"section_states": {**snapshot["section_states"], payload["section"]: state}}


def _artifact(snapshot: Snapshot, event: Event, payload: Payload) -> Snapshot:
    entry = {
        "path": payload["path"],
        "sha256": payload["sha256"],
        "schema_id": payload["schema_id"],
        "writer_worker": payload["writer_worker"],
        "ts": event.ts,
        "event_id": event.event_id,
    }
    return {"artifacts_index": {**snapshot["artifacts_index"], payload["name"]: entry}}


def _started(snapshot: Snapshot, event: Event, payload: Payload) -> Snapshot:
    item = {
        "work_item_id": payload["work_item_id"],
        "worker": payload["worker"],
        "attempt": payload["attempt"],
        "scope_key": payload["scope_key"],
        "status": "running",
        "inputs": payload["inputs"],
        "outputs": [],
        "started_at": event.ts,
    }
    return {"work_items": [*snapshot["work_items"], item]}


def _finished(snapshot: Snapshot, event: Event, payload: Payload) -> Snapshot:
    end = {"status": "finished", "outputs": payload["outputs"], "finished_at": event.ts}
    return _ended(snapshot, payload, end)


def _failed(snapshot: Snapshot, event: Event, payload: Payload) -> Snapshot:
    end = {"status": "failed", "error": payload["error"], "finished_at": event.ts}
    return _ended(snapshot, payload, end)


def _ended(snapshot: Snapshot, payload: Payload, end: Mapping[str, Any]) -> Snapshot:
    items = [
        {**item, **end} if item["work_item_id"] == payload["work_item_id"] else item
        for item in snapshot["work_items"]
    ]
    return {"work_items": items}


def _opened(snapshot: Snapshot, _event: Event, payload: Payload) -> Snapshot:
    issue = payload["issue"]
    others = [each for each in snapshot["issues"] if each["issue_id"] != issue["issue_id"]]
    return {"issues": [*others, issue]}


def _resolved(snapshot: Snapshot, _event: Event, payload: Payload) -> Snapshot:
    issues = [
        {**each, "status": "RESOLVED"} if each["issue_id"] == payload["issue_id"] else each
        for each in snapshot["issues"]
    ]
    return {"issues": issues}


_CHANGES: Mapping[str, Change] = {
    "RUN_CREATED": _created,
    "RUN_STATE_CHANGED": _state,
    "SECTION_STATE_CHANGED": _section,
    "ARTIFACT_WRITTEN": _artifact,
    "WORK_ITEM_STARTED": _started,
    "WORK_ITEM_FINISHED": _finished,
    "WORK_ITEM_FAILED": _failed,
    "ISSUE_OPENED": _opened,
    "ISSUE_RESOLVED": _resolved,
}
"""What each kind of event changes. The others are there to be read."""
