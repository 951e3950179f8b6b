"""Telemetry records, derived only from the journal of a run.

One record for the run, and one below it for every work item, gate, model call and publication, each
with the ids of its trace. The id of a record follows from its subject, so the same journal gives
the same records, whichever process reads it and however often.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
    """The records that a part of a journal yields."""

    new_records: list[TelemetryRecord] = field(default_factory=list)
    updates: list[tuple[str, TelemetryRecord]] = field(default_factory=list)
    commits: list[tuple[str, TelemetryRecord]] = field(default_factory=list)
    open_gates: dict[str, str] = field(default_factory=dict)
    """Keys of the gates that have begun: a gate runs again after every fix, so its name is not
    enough."""


def derive_records(run_id: str, config: Mapping[str, Any], events: Sequence[RunEvent]) -> JournalRecords:
    """Derive records from events; `config` is the redacted configuration."""
    derived = JournalRecords()
    for event in events:
        if (add_records := _EVENT_RECORDERS.get(event.type)) is not None:
            add_records(derived, run_id, config, event, event.payload)
    return derived


def make_record_id(run_id: str, kind: str, name: str = "") -> str:
    """Make the id of a record: a UUID derived from its subject."""
    digits = hashlib.sha256(f"{run_id}\0{kind}\0{name}".encode()).hexdigest()
    return str(UUID(hex=digits[:32], version=4))


_PLAIN_ARGUMENTS: Final = frozenset({"run_id", "artifact_name", "filter", "limit", "cursor"})
"""Arguments that a record repeats; URLs and configurations may hold confidential values."""


def make_call_record(
    *,
    tool: str,
    run_id: str,
    arguments: Mapping[str, Any],
    started: float,
    finished: float,
    status: str,
    trace: tuple[str, str],
    summary: str,
) -> TelemetryRecord:
    """Make the record of a tool call that has ended."""
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
                name: value if name in _PLAIN_ARGUMENTS else "(not told)" for name, value in sorted(arguments.items())
            },
        },
    }
    record["error_summary" if status == "failure" else "output_summary"] = summary
    if run_id:
        record["parent_run_id"] = run_id
    return record


def _add_run(
    derived: JournalRecords, run_id: str, config: Mapping[str, Any], event: RunEvent, _payload: Payload
) -> None:
    derived.new_records.append(
        {
            "event_id": make_record_id(run_id, "launch"),
            "run_id": run_id,
            "agent_name": RUN_AGENT_NAME,
            "job_type": "launch",
            "start_time": event.ts,
            "status": "running",
            "product": config.get("product_name", ""),
            "product_family": config.get("family", ""),
            "platform": config.get("target_platform", ""),
            "git_repo": config.get("github_repo_url", ""),
            "context_json": {**_select_trace(event), **_select_labels(config)},
        }
    )


def _select_labels(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels that the configuration sets for its records."""
    telemetry_config = config.get("telemetry", {})
    return {name: telemetry_config[name] for name in ("project", "run_tags") if telemetry_config.get(name)}


def _add_state_change(
    derived: JournalRecords, run_id: str, _config: Mapping[str, Any], event: RunEvent, payload: Payload
) -> None:
    update: TelemetryRecord = {"context_json": {"state": payload["new_state"]}}
    if status := _STATUS_BY_END_STATE.get(payload["new_state"]):
        update |= {"status": status, "end_time": event.ts}
    derived.updates.append((make_record_id(run_id, "launch"), update))


def _make_start_recorder(kind: str, name_item: Callable[[Payload], str]) -> "EventRecorder":
    def add_start(
        derived: JournalRecords, run_id: str, config: Mapping[str, Any], event: RunEvent, payload: Payload
    ) -> None:
        item = name_item(payload)
        key = item
        if kind == "gate":
            key = derived.open_gates[item] = f"{item} {event.seq}"
        record: TelemetryRecord = {
            "event_id": make_record_id(run_id, kind, key),
            "run_id": f"{run_id}-{kind}-{item}"[:256],
            "parent_run_id": run_id,
            "agent_name": f"launch.{kind}",
            "job_type": kind,
            "item_name": item,
            "start_time": event.ts,
            "status": "running",
            "product": config.get("product_name", ""),
            "product_family": config.get("family", ""),
            "platform": config.get("target_platform", ""),
            "context_json": {**_select_trace(event), **_select_context(payload)},
        }
        step, _, section = str(payload.get("scope_key", "")).partition(":")
        if step == "draft":
            record["website_section"] = section
        derived.new_records.append(record)

    return add_start


def _make_end_recorder(kind: str, name_item: Callable[[Payload], str], status: str) -> "EventRecorder":
    def add_end(
        derived: JournalRecords, run_id: str, _config: Mapping[str, Any], event: RunEvent, payload: Payload
    ) -> None:
        item = name_item(payload)
        is_success = status == "success" and payload.get("ok", True)
        update: TelemetryRecord = {"status": "success" if is_success else "failure", "end_time": event.ts}
        if error := payload.get("error"):
            if error.get("code") == ErrorCode.CANCELLED.name:
                update["status"] = "cancelled"
            update["error_summary"] = f"{error.get('code', '')}: {error.get('message', '')}"[:4000]
        if "issues" in payload and isinstance(payload["issues"], int):
            update["items_failed"] = payload["issues"]
        if metrics := _select_metrics(payload):
            update["metrics_json"] = metrics
        if "duration_ms" in payload:
            update["duration_ms"] = payload["duration_ms"]
        # The events of a worker's gates are recorded together, so the start was read just now.
        derived.updates.append((make_record_id(run_id, kind, derived.open_gates.pop(item, item)), update))

    return add_end


def _add_publication(
    derived: JournalRecords, run_id: str, _config: Mapping[str, Any], event: RunEvent, payload: Payload
) -> None:
    publication_id = make_record_id(run_id, "commit_service")
    derived.new_records.append(
        {
            "event_id": publication_id,
            "run_id": f"{run_id}-commit_service-pr",
            "parent_run_id": run_id,
            "agent_name": "launch.commit_service",
            "job_type": "commit_service",
            "item_name": payload.get("pr_url", ""),
            "git_branch": payload.get("branch", ""),
            "start_time": event.ts,
            "end_time": event.ts,
            "status": "success",
            "context_json": _select_trace(event),
        }
    )
    if commit := payload.get("commit_sha"):
        commit_record = {"commit_hash": commit, "commit_source": "ci", "commit_timestamp": event.ts}
        derived.commits += [(publication_id, commit_record), (make_record_id(run_id, "launch"), commit_record)]


def _select_trace(event: RunEvent) -> dict[str, str]:
    trace_context = {"trace_id": event.trace.trace_id, "span_id": event.trace.span_id}
    if event.trace.parent_span_id:
        trace_context["parent_span_id"] = event.trace.parent_span_id
    return trace_context


def _select_context(payload: Payload) -> dict[str, Any]:
    names = ("worker", "attempt", "profile", "model", "prompt_hash", "temperature", "max_tokens")
    return {name: payload[name] for name in names if name in payload}


def _select_metrics(payload: Payload) -> dict[str, Any]:
    names = ("latency_ms", "token_usage", "finish_reason", "output_hash", "http_status")
    return {name: payload[name] for name in names if name in payload}


def _name_work_item(payload: Payload) -> str:
    return str(payload["work_item_id"]).partition(":")[2]


def _name_gate(payload: Payload) -> str:
    return str(payload["gate"])


def _name_model_call(payload: Payload) -> str:
    return str(payload["call_id"])


EventRecorder: TypeAlias = Callable[[JournalRecords, str, Mapping[str, Any], RunEvent, Payload], None]

_EVENT_RECORDERS: Final[Mapping[str, EventRecorder]] = {
    "RUN_CREATED": _add_run,
    "RUN_STATE_CHANGED": _add_state_change,
    "WORK_ITEM_STARTED": _make_start_recorder("worker", _name_work_item),
    "WORK_ITEM_FINISHED": _make_end_recorder("worker", _name_work_item, "success"),
    "WORK_ITEM_FAILED": _make_end_recorder("worker", _name_work_item, "failure"),
    "GATE_RUN_STARTED": _make_start_recorder("gate", _name_gate),
    "GATE_RUN_FINISHED": _make_end_recorder("gate", _name_gate, "success"),
    "LLM_CALL_STARTED": _make_start_recorder("llm_call", _name_model_call),
    "LLM_CALL_FINISHED": _make_end_recorder("llm_call", _name_model_call, "success"),
    "LLM_CALL_FAILED": _make_end_recorder("llm_call", _name_model_call, "failure"),
    "PR_OPENED": _add_publication,
}
