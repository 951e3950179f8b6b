"""The shapes of answers: each toolset keeps the shape that its specification binds.

A payload turns an outcome into an `Answer`; a surface only carries answers. Nothing is ever merged
into the top level of a shape.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from time import time
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome, Rejected
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION


@dataclass(slots=True, kw_only=True)
class AnswerMeta:
    """Metadata of an answer. A tool adds the repository and warnings while it runs."""

    request_id: str | None = None
    ts: float | None = None
    duration_ms: float | None = None
    repo: str | None = None
    warnings: list[Mapping[str, Any]] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    """Facts about the call, for its span and for payloads that can show them."""

    def as_json(self) -> dict[str, Any]:
        """Return `_meta` of the envelope, without the fields that are not set."""
        body: dict[str, Any] = {
            "schemaVersion": SCHEMA_VERSION,
            "toolingVersion": TOOLING_VERSION,
            "ts": format_timestamp(time() if self.ts is None else self.ts),
        }
        if self.request_id is not None:
            body["requestId"] = self.request_id
        if self.duration_ms is not None:
            body["durationMs"] = round(self.duration_ms, 3)
        if self.repo is not None:
            body["repo"] = self.repo
        if self.warnings:
            body["warnings"] = self.warnings
        return body


def format_timestamp(moment: float) -> str:
    """Format seconds since the epoch as ISO 8601 in UTC, such as `2026-01-24T12:34:56.789Z`."""
    seconds, milliseconds = divmod(int(moment * 1000), 1000)
    return f"{_format_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=8)  # answers come many to the second
def _format_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@dataclass(frozen=True, slots=True)
class Answer:
    """An outcome in the shape of its payload: a JSON body, content blocks, or both."""

    ok: bool
    body: dict[str, Any] | None = None
    content: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Payload:
    """One shape of answers: its name in the contract snapshot, and how results and errors look."""

    name: str
    render_result: Callable[[Any, AnswerMeta], Answer]
    render_error: Callable[[ToolError, AnswerMeta], Answer]

    def render_outcome(self, outcome: Outcome, meta: AnswerMeta) -> Answer:
        """Convert an outcome to an answer of this shape."""
        if isinstance(outcome, Done):
            return self.render_result(outcome.result, meta)
        return self.render_error(_make_error(outcome), meta)


def get_outcome_error(outcome: Outcome) -> ToolError | None:
    """Return the error of an outcome, or None if the call succeeded."""
    return None if isinstance(outcome, Done) else _make_error(outcome)


def _make_error(outcome: Failed | Rejected | Cancelled) -> ToolError:
    if isinstance(outcome, Cancelled):
        return ToolError(ErrorCode.CANCELLED, "The request was cancelled.")
    return outcome.error


def _make_content_blocks(result: str | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    return ({"type": "text", "text": result},) if isinstance(result, str) else result


def _render_content_error(error: ToolError, _meta: AnswerMeta) -> Answer:
    facts = error.details or {}
    if not isinstance(facts, Mapping):  # the violations of a schema are a list
        facts = {"details": facts}
    body = {"code": error.code.name, "message": error.explanation, **facts}
    return Answer(False, body, _make_content_blocks(error.explanation))


def _render_flat_failure(error: ToolError) -> dict[str, Any]:
    match error.code:
        case ErrorCode.INVALID_REQUEST:
            violations = error.details
            if not isinstance(violations, list):
                violations = [{"instancePath": "", "message": error.explanation}]
            errors = sorted((_locate_argument(violation), violation["message"]) for violation in violations)
            return {
                "ok": False,
                "reason": "validation_failed",
                "errors": [{"path": path, "msg": message} for path, message in errors],
            }
        case ErrorCode.UNKNOWN_TOOL:
            return {"ok": False, "reason": "unsupported", "detail": "tool not implemented"}
        case ErrorCode.NOT_FOUND:
            return {"ok": False, "reason": "not_found"}
        case _:
            return {"ok": False, "reason": error.code.name.lower(), "detail": error.explanation}


def _locate_argument(violation: Mapping[str, str]) -> str:
    """Return the path of the argument that a violation is about.

    These errors share a list with those of the value that a tool checks, so a missing argument gets
    the path it would have: `/schema` cannot be mistaken for the root of that value.
    """
    path = violation["instancePath"]
    if violation.get("keyword") == "required":
        return path + "/" + violation["message"].split('"')[1]
    return path


def _render_launch_failure(error: ToolError, meta: AnswerMeta) -> Answer:
    run_id = meta.notes.get("run_id")
    code = ErrorCode.INVALID_INPUT if error.code is ErrorCode.INVALID_REQUEST else error.code
    details = error.details or {}
    if not isinstance(details, Mapping):  # the violations of a schema are a list
        details = {"violations": details}
    if error.code is ErrorCode.INTERNAL:  # the specification requires `cause_class`
        details = {"cause_class": type(error.__cause__ or error).__name__, **details}
    details = {**details, "hint": error.hint} if error.hint else dict(details)
    failure = {"code": code.name, "message": error.message, "retryable": error.retryable, "details": details}
    return Answer(False, {"ok": False, **({"run_id": run_id} if run_id else {}), "error": failure})


ENVELOPE: Final = Payload(
    "envelope",
    lambda result, meta: Answer(True, {"ok": True, "result": result, "_meta": meta.as_json()}),
    lambda error, meta: Answer(False, {"ok": False, "error": error.as_json(), "_meta": meta.as_json()}),
)
"""`{ok, result | error, _meta}`: the shape of the code toolset and of the HTTP API."""

CONTENT: Final = Payload(
    "content", lambda result, _meta: Answer(True, content=_make_content_blocks(result)), _render_content_error
)
"""MCP content blocks as the tool returned them; a plain string becomes one text block."""

FLAT: Final = Payload(
    "flat",
    lambda result, _meta: Answer(result["ok"], result),
    lambda error, _meta: Answer(False, _render_flat_failure(error)),
)
"""`{ok, ...}`: the object that the tool returned, including `ok`, without any wrapping.

A failure is `{ok: false, reason}` with `errors` (each a path and a message) or a `detail`."""

LAUNCH: Final = Payload("launch", lambda result, _meta: Answer(True, {"ok": True, **result}), _render_launch_failure)
"""`{ok, ...}` of the launch toolset: the tool's own object, `ok` first.

A failure is `{ok: false, run_id?, error}`, and its `error` always has code, message, retryable and
details. That shape has no field for a hint, so the hint goes into the details."""

ENVELOPE_SCHEMA: Final[Mapping[str, Any]] = json.loads(Path(__file__).with_name("envelope.schema.json").read_bytes())
"""The envelope as JSON Schema; a tool's own output schema replaces `result`.

The top level is closed, because nothing may ever be merged into it. `error` and `_meta` stay open:
a client that validates must not break on the optional field that a minor version adds."""


def build_envelope_schema(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the envelope around the result of one tool."""
    properties = {**ENVELOPE_SCHEMA["properties"], "result": result}
    return {**ENVELOPE_SCHEMA, "properties": properties}
