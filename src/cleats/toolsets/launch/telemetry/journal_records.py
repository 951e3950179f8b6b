"""Telemetry records, derived only from the journal of a run.

One record for the run, and one below it for every work item, gate, model call and publication, each
with the ids of its trace. The id of a record follows from its subject, so the same journal gives
the same records, whichever process reads it and however often.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any, Final, TypeAlias
from uuid import UUID

from cleats.contract.errors import ErrorCode
from cleats.contract.payload import format_timestamp
from cleats.toolsets.launch.runs.events import RunEvent

RUN_AGENT_NAME: Final = "launch.orchestrator"

TelemetryRecord: TypeAlias = dict[str, Any]
Payload: TypeAlias = Mapping[str, Any]

_STATUS_BY_END_STATE: Final = {"DONE": "success", "FAILED": "failure", "CANCELLED": "cancelled"}


@dataclass(slots=True)
class JournalRecords:
    """The records that a part of a journal yields; `config` is the redacted configuration of its run."""

    run_id: str
    config: Mapping[str, Any]
    new_records: list[TelemetryRecord] = field(default_factory=list)
    updates: list[tuple[str, TelemetryRecord]] = field(default_factory=list)
    commits: list[tuple[str, TelemetryRecord]] = field(default_factory=list)
    _open_gates: dict[str, str] = field(default_factory=dict)
    """Keys of the gates that have begun: a gate runs again after every fix, so its name is not enough."""

    def add_event(self, event: RunEvent) -> None:
        """Add what an event yields; events of most types yield nothing."""
        payload = event.payload
        match event.type:
            case "RUN_CREATED":
                self._add_run(event)
            case "RUN_STATE_CHANGED":
                self._add_state_change(event, payload)
            case "PR_OPENED":
                self._add_publication(event, payload)
            case kind if kind in _START_EVENTS:
                self._add_start(event, payload, *_START_EVENTS[kind])
            case kind if kind in _END_EVENTS:
                self._add_end(event, payload, *_END_EVENTS[kind])

    def _add_run(self, event: RunEvent) -> None:
        labels = _select(self.config.get("telemetry", {}), ("project", "run_tags"))
        self.new_records.append(
            {
                "event_id": make_record_id(self.run_id, "launch"),
                "run_id": self.run_id,
                "agent_name": RUN_AGENT_NAME,
                "job_type": "launch",
                "start_time": event.ts,
                "status": "running",
                **self._describe_product(),
                "git_repo": self.config.get("github_repo_url", ""),
                "context_json": {**_select_trace(event), **{name: labels[name] for name in labels if labels[name]}},
            }
        )

    def _describe_product(self) -> dict[str, str]:
        names = {"product": "product_name", "product_family": "family", "platform": "target_platform"}
        return {field_name: self.config.get(name, "") for field_name, name in names.items()}

    def _add_state_change(self, event: RunEvent, payload: Payload) -> None:
        update: TelemetryRecord = {"context_json": {"state": payload["new_state"]}}
        if status := _STATUS_BY_END_STATE.get(payload["new_state"]):
            update |= {"status": status, "end_time": event.ts}
        self.updates.append((make_record_id(self.run_id, "launch"), update))

    def _add_start(self, event: RunEvent, payload: Payload, kind: str, name_field: str) -> None:
        item = _name_item(payload, name_field)
        key = item
        if kind == "gate":
            key = self._open_gates[item] = f"{item} {event.seq}"
        record = self._add_part(event, kind, item, key)
        record |= self._describe_product()
        record["context_json"] |= _select(payload, _CONTEXT_FIELDS)
        step, _, section = str(payload.get("scope_key", "")).partition(":")
        if step == "draft":
            record["website_section"] = section

    def _add_part(self, event: RunEvent, kind: str, item: str, key: str = "") -> TelemetryRecord:
        """Add a record below that of the run, and return it."""
        record: TelemetryRecord = {
            "event_id": make_record_id(self.run_id, kind, key),
            "run_id": f"{self.run_id}-{kind}-{item}"[:256],
            "parent_run_id": self.run_id,
            "agent_name": f"launch.{kind}",
            "job_type": kind,
            "item_name": item,
            "start_time": event.ts,
            "status": "running",
            "context_json": _select_trace(event),
        }
        self.new_records.append(record)
        return record

    def _add_end(self, event: RunEvent, payload: Payload, kind: str, name_field: str, status: str) -> None:
        item = _name_item(payload, name_field)
        is_success = status == "success" and payload.get("ok", True)
        update: TelemetryRecord = {"status": "success" if is_success else "failure", "end_time": event.ts}
        if error := payload.get("error"):
            if error.get("code") == ErrorCode.CANCELLED.name:
                update["status"] = "cancelled"
            update["error_summary"] = f"{error.get('code', '')}: {error.get('message', '')}"[:4000]
        if isinstance(payload.get("issues"), int):
            update["items_failed"] = payload["issues"]
        if metrics := _select(payload, _METRIC_FIELDS):
            update["metrics_json"] = metrics
        if "duration_ms" in payload:
            update["duration_ms"] = payload["duration_ms"]
        # The events of a worker's gates are recorded together, so the start was read just now.
        self.updates.append((make_record_id(self.run_id, kind, self._open_gates.pop(item, item)), update))

    def _add_publication(self, event: RunEvent, payload: Payload) -> None:
        publication = self._add_part(event, "commit_service", "pr")
        publication |= {"item_name": payload.get("pr_url", ""), "git_branch": payload.get("branch", "")}
        publication |= {"end_time": event.ts, "status": "success"}
        if commit := payload.get("commit_sha"):
            record = {"commit_hash": commit, "commit_source": "ci", "commit_timestamp": event.ts}
            self.commits += [(publication["event_id"], record), (make_record_id(self.run_id, "launch"), record)]


_START_EVENTS: Final = {
    "WORK_ITEM_STARTED": ("worker", "work_item_id"),
    "GATE_RUN_STARTED": ("gate", "gate"),
    "LLM_CALL_STARTED": ("llm_call", "call_id"),
}
_END_EVENTS: Final = {
    "WORK_ITEM_FINISHED": ("worker", "work_item_id", "success"),
    "WORK_ITEM_FAILED": ("worker", "work_item_id", "failure"),
    "GATE_RUN_FINISHED": ("gate", "gate", "success"),
    "LLM_CALL_FINISHED": ("llm_call", "call_id", "success"),
    "LLM_CALL_FAILED": ("llm_call", "call_id", "failure"),
}
_CONTEXT_FIELDS: Final = ("worker", "attempt", "profile", "model", "prompt_hash", "temperature", "max_tokens")
_METRIC_FIELDS: Final = ("latency_ms", "token_usage", "finish_reason", "output_hash", "http_status")


def derive_records(run_id: str, config: Mapping[str, Any], events: Sequence[RunEvent]) -> JournalRecords:
    """Derive records from events; `config` is the redacted configuration."""
    derived = JournalRecords(run_id, config)
    for event in events:
        derived.add_event(event)
    return derived


def make_record_id(run_id: str, kind: str, name: str = "") -> str:
    """Make the id of a record: a UUID derived from its subject."""
    digits = hashlib.sha256(f"{run_id}\0{kind}\0{name}".encode()).hexdigest()
    return str(UUID(hex=digits[:32], version=4))


_PLAIN_ARGUMENTS: Final = frozenset({"run_id", "artifact_name", "filter", "limit", "cursor"})
"""Arguments that a record repeats; URLs and configurations may hold confidential values."""


def make_call_record(
    tool: str, arguments: Payload, *, run_id: str, started: float, trace: tuple[str, str], result: tuple[str, str]
) -> TelemetryRecord:
    """Make the record of a tool call that ends now."""
    finished, (status, summary) = time(), result
    record: TelemetryRecord = {
        "event_id": make_record_id(trace[1], "mcp_tool_call", f"{trace[0]} {tool} {started}"),
        "run_id": f"{run_id}-mcp_tool_call-{trace[1]}" if run_id else f"mcp_tool_call-{trace[1]}",
        "agent_name": "launch.mcp",
        "job_type": "mcp_tool_call",
        "item_name": tool,
        "start_time": format_timestamp(started),
        "end_time": format_timestamp(finished),
        "duration_ms": round((finished - started) * 1000, 3),
        "status": status,
        "context_json": {
            "trace_id": trace[0],
            "span_id": trace[1],
            "arguments": {
                name: value if name in _PLAIN_ARGUMENTS else "(not recorded)"
                for name, value in sorted(arguments.items())
            },
        },
    }
    record["error_summary" if status == "failure" else "output_summary"] = summary
    if run_id:
        record["parent_run_id"] = run_id
    return record


def _select_trace(event: RunEvent) -> dict[str, str]:
    return {name: value for name, value in event.trace._asdict().items() if value}


def _select(payload: Payload, names: Sequence[str]) -> dict[str, Any]:
    return {name: payload[name] for name in names if name in payload}


def _name_item(payload: Payload, name_field: str) -> str:
    name = str(payload[name_field])
    return name.partition(":")[2] if name_field == "work_item_id" else name
