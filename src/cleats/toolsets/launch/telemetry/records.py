"""Records for watchers, made from the journal of a run and from nothing else.

One record for the run, and one below it for every work item, gate, model call and publication,
each with the ids of its trace. Ids follow from what a record is about, so the same journal gives
the same records whoever reads it, and however often.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from uuid import UUID

from cleats.contract.errors import ErrorCode
from cleats.contract.payload import timestamp
from cleats.toolsets.launch.events import Event

AGENT: Final = "launch.orchestrator"

Record: TypeAlias = dict[str, Any]
Payload: TypeAlias = Mapping[str, Any]

_ENDS: Final = {"DONE": "success", "FAILED": "failure", "CANCELLED": "cancelled"}


@dataclass(slots=True)
class Reading:
    """What a stretch of a journal says."""

    begun: list[Record] = field(default_factory=list)
    ended: list[tuple[str, Record]] = field(default_factory=list)
    commits: list[tuple[str, Record]] = field(default_factory=list)
    open: dict[str, str] = field(default_factory=dict)
    """Gates that have begun: one is run again after every fix, so a name is not enough."""


def read(run_id: str, config: Mapping[str, Any], events: Sequence[Event]) -> Reading:
    """Turn events into records; `config` is the configuration as others may see it."""
    made = Reading()
    for event in events:
        if (tell := _TELLERS.get(event.type)) is not None:
            tell(made, run_id, config, event, event.payload)
    return made


def record_id(run_id: str, kind: str, name: str = "") -> str:
    """The id of a record: a UUID that belongs to what it is about."""
    digits = hashlib.sha256(f"{run_id}\0{kind}\0{name}".encode()).hexdigest()
    return str(UUID(hex=digits[:32], version=4))


_PLAIN: Final = frozenset({"run_id", "artifact_name", "filter", "limit", "cursor"})
"""Arguments that a record repeats; an address or a configuration may hold what is not for all."""


def tool_call(
    *,
    tool: str,
    run_id: str,
    arguments: Mapping[str, Any],
    begun: float,
    ended: float,
    status: str,
    trace: tuple[str, str],
    summary: str,
) -> Record:
    """The record of one call of a tool, which has ended."""
    record: Record = {
        "event_id": record_id(trace[1], "mcp_tool_call", f"{trace[0]} {tool} {begun}"),
        "run_id": f"{run_id}-mcp_tool_call-{trace[1]}" if run_id else f"mcp_tool_call-{trace[1]}",
        "agent_name": "launch.mcp",
        "job_type": "mcp_tool_call",
        "item_name": tool,
        "start_time": timestamp(begun),
        "end_time": timestamp(ended),
        "duration_ms": round((ended - begun) * 1000, 3),
        "status": status,
        "context_json": {
            "trace_id": trace[0],
            "span_id": trace[1],
            "arguments": {
                name: value if name in _PLAIN else "(not told)"
                for name, value in sorted(arguments.items())
            },
        },
    }
    record["error_summary" if status == "failure" else "output_summary"] = summary
    if run_id:
        record["parent_run_id"] = run_id
    return record


def _created(
    made: Reading, run_id: str, config: Mapping[str, Any], event: Event, _payload: Payload
) -> None:
    made.begun.append(
        {
            "event_id": record_id(run_id, "launch"),
            "run_id": run_id,
            "agent_name": AGENT,
            "job_type": "launch",
            "start_time": event.ts,
            "status": "running",
            "product": config.get("product_name", ""),
            "product_family": config.get("family", ""),
            "platform": config.get("target_platform", ""),
            "git_repo": config.get("github_repo_url", ""),
            "context_json": {**_trace(event), **_told(config)},
        }
    )


def _told(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the configuration wants its records to be known by."""
    wanted = config.get("telemetry", {})
    return {name: wanted[name] for name in ("project", "run_tags") if wanted.get(name)}


def _state(
    made: Reading, run_id: str, _config: Mapping[str, Any], event: Event, payload: Payload
) -> None:
    update: Record = {"context_json": {"state": payload["new_state"]}}
    if status := _ENDS.get(payload["new_state"]):
        update |= {"status": status, "end_time": event.ts}
    made.ended.append((record_id(run_id, "launch"), update))


def _begin(kind: str, name: Callable[[Payload], str]) -> "Teller":
    def tell(
        made: Reading, run_id: str, config: Mapping[str, Any], event: Event, payload: Payload
    ) -> None:
        item = name(payload)
        key = item
        if kind == "gate":
            key = made.open[item] = f"{item} {event.seq}"
        record: Record = {
            "event_id": record_id(run_id, kind, key),
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
            "context_json": {**_trace(event), **_context(payload)},
        }
        step, _, section = str(payload.get("scope_key", "")).partition(":")
        if step == "draft":
            record["website_section"] = section
        made.begun.append(record)

    return tell


def _end(kind: str, name: Callable[[Payload], str], status: str) -> "Teller":
    def tell(
        made: Reading, run_id: str, _config: Mapping[str, Any], event: Event, payload: Payload
    ) -> None:
        item = name(payload)
        good = status == "success" and payload.get("ok", True)
        update: Record = {"status": "success" if good else "failure", "end_time": event.ts}
        if error := payload.get("error"):
            if error.get("code") == ErrorCode.CANCELLED.name:
                update["status"] = "cancelled"
            update["error_summary"] = f"{error.get('code', '')}: {error.get('message', '')}"[:4000]
        if "issues" in payload and isinstance(payload["issues"], int):
            update["items_failed"] = payload["issues"]
        if facts := _metrics(payload):
            update["metrics_json"] = facts
        if "duration_ms" in payload:
            update["duration_ms"] = payload["duration_ms"]
        # What a worker says of its gates is recorded at once, so the beginning was read just now.
        made.ended.append((record_id(run_id, kind, made.open.pop(item, item)), update))

    return tell


def _published(
    made: Reading, run_id: str, _config: Mapping[str, Any], event: Event, payload: Payload
) -> None:
    record = record_id(run_id, "commit_service")
    made.begun.append(
        {
            "event_id": record,
            "run_id": f"{run_id}-commit_service-pr",
            "parent_run_id": run_id,
            "agent_name": "launch.commit_service",
            "job_type": "commit_service",
            "item_name": payload.get("pr_url", ""),
            "git_branch": payload.get("branch", ""),
            "start_time": event.ts,
            "end_time": event.ts,
            "status": "success",
            "context_json": _trace(event),
        }
    )
    if commit := payload.get("commit_sha"):
        found = {"commit_hash": commit, "commit_source": "ci", "commit_timestamp": event.ts}
        made.commits += [(record, found), (record_id(run_id, "launch"), found)]


def _trace(event: Event) -> dict[str, str]:
    made = {"trace_id": event.trace.trace_id, "span_id": event.trace.span_id}
    if event.trace.parent_span_id:
        made["parent_span_id"] = event.trace.parent_span_id
    return made


def _context(payload: Payload) -> dict[str, Any]:
    names = ("worker", "attempt", "profile", "model", "prompt_hash", "temperature", "max_tokens")
    return {name: payload[name] for name in names if name in payload}


def _metrics(payload: Payload) -> dict[str, Any]:
    names = ("latency_ms", "token_usage", "finish_reason", "output_hash", "http_status")
    return {name: payload[name] for name in names if name in payload}


def _work_item(payload: Payload) -> str:
    return str(payload["work_item_id"]).partition(":")[2]


def _gate(payload: Payload) -> str:
    return str(payload["gate"])


def _model_call(payload: Payload) -> str:
    return str(payload["call_id"])


Teller: TypeAlias = Callable[[Reading, str, Mapping[str, Any], Event, Payload], None]

_TELLERS: Final[Mapping[str, Teller]] = {
    "RUN_CREATED": _created,
    "RUN_STATE_CHANGED": _state,
    "WORK_ITEM_STARTED": _begin("worker", _work_item),
    "WORK_ITEM_FINISHED": _end("worker", _work_item, "success"),
    "WORK_ITEM_FAILED": _end("worker", _work_item, "failure"),
    "GATE_RUN_STARTED": _begin("gate", _gate),
    "GATE_RUN_FINISHED": _end("gate", _gate, "success"),
    "LLM_CALL_STARTED": _begin("llm_call", _model_call),
    "LLM_CALL_FINISHED": _end("llm_call", _model_call, "success"),
    "LLM_CALL_FAILED": _end("llm_call", _model_call, "failure"),
    "PR_OPENED": _published,
}
