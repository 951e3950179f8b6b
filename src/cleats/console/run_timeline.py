"""A launch run as a timeline: its states and steps, read from the log of its events."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cleats.console.rendering import parse_time

STATE_ORDER: Final = (
    "CREATED",
    "CLONED_INPUTS",
    "INGESTED",
    "FACTS_READY",
    "PLAN_READY",
    "DRAFTING",
    "DRAFT_READY",
    "LINKING",
    "VALIDATING",
    "READY_FOR_PR",
    "PR_OPENED",
    "DONE",
)
"""The states of a run that nothing stops, in order."""

FINAL_STATES: Final = frozenset({"DONE", "FAILED", "CANCELLED"})

STATE_LABELS: Final = {
    "CREATED": "Created",
    "CLONED_INPUTS": "Repositories fetched",
    "INGESTED": "Source read",
    "FACTS_READY": "Facts collected",
    "PLAN_READY": "Pages planned",
    "DRAFTING": "Writing pages",
    "DRAFT_READY": "Pages written",
    "LINKING": "Put into the site",
    "VALIDATING": "Checking",
    "FIXING": "Fixing",
    "READY_FOR_PR": "Ready for the pull request",
    "PR_OPENED": "Pull request opened",
    "DONE": "Done",
    "FAILED": "Failed",
    "CANCELLED": "Cancelled",
}

STATE_BADGES: Final = {
    "READY_FOR_PR": "good",
    "PR_OPENED": "good",
    "DONE": "good",
    "FAILED": "bad",
    "VALIDATING": "warning",
}

VALIDATABLE_STATES: Final = frozenset({"LINKING", "VALIDATING", "FIXING", "READY_FOR_PR", "PR_OPENED"})


@dataclass(slots=True)
class TimelineStep:
    """One piece of work."""

    name: str
    started_at: float
    finished_at: float | None = None
    status: str = "running"
    outputs: int = 0

    @property
    def duration_ms(self) -> float | None:
        return None if self.finished_at is None else (self.finished_at - self.started_at) * 1000


@dataclass(slots=True)
class TimelineState:
    """One state that a run was in, and the work that was done in it."""

    state: str
    entered_at: float
    steps: list[TimelineStep] = field(default_factory=list)

    @property
    def label(self) -> str:
        return STATE_LABELS.get(self.state, self.state)


@dataclass(slots=True)
class GateDuration:
    """The latest run of a gate."""

    duration_ms: float
    ok: bool


def parse_events(text: str) -> list[Mapping[str, Any]]:
    """Return the events of a log; a line that is still being written is left out."""
    events = []
    for line in text.splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return events


def build_timeline(events: Iterable[Mapping[str, Any]]) -> tuple[list[TimelineState], dict[str, GateDuration]]:
    """Return the states of a run in order, and the durations of its gates."""
    states: list[TimelineState] = []
    steps: dict[str, TimelineStep] = {}
    gates: dict[str, GateDuration] = {}
    for event in events:
        payload, moment = event.get("payload") or {}, parse_time(event.get("ts")) or 0.0
        match event.get("type"):
            case "RUN_CREATED":
                states.append(TimelineState("CREATED", moment))
            case "RUN_STATE_CHANGED":
                states.append(TimelineState(payload["new_state"], moment))
            case "WORK_ITEM_STARTED":
                step = TimelineStep(payload.get("scope_key") or payload.get("worker", ""), moment)
                steps[payload["work_item_id"]] = step
                if states:
                    states[-1].steps.append(step)
            case "WORK_ITEM_FINISHED" | "WORK_ITEM_FAILED" as kind:
                if (finished := steps.get(payload.get("work_item_id", ""))) is not None:
                    finished.finished_at = moment
                    finished.status = "done" if kind == "WORK_ITEM_FINISHED" else "failed"
                    finished.outputs = len(payload.get("outputs") or ())
            case "GATE_RUN_FINISHED":
                gates[payload["gate"]] = GateDuration(payload.get("duration_ms") or 0, bool(payload.get("ok")))
    return states, gates


def list_actions(state: str, report: Mapping[str, Any] | None) -> dict[str, bool]:
    """Return which steps a run allows now."""
    is_open = state not in FINAL_STATES
    return {
        "resume": is_open and state != "READY_FOR_PR",
        "validate": state in VALIDATABLE_STATES,
        "fix": state == "VALIDATING" and report is not None and not report.get("ok"),
        "open_pr": state == "READY_FOR_PR",
        "cancel": is_open,
    }
