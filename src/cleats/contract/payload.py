"""What an answer looks like: each toolset keeps the shape that its own spec binds.

A payload turns an outcome into an `Answer`; a surface only carries answers. Nothing is ever
merged into the top level of a shape.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from time import time
from typing import Any, Final, Protocol

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Done, Outcome
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION


@dataclass(slots=True, kw_only=True)
class Meta:
    """What an answer says about itself. A tool adds the repository and warnings as it goes."""

    request_id: str | None = None
    ts: float | None = None
    duration_ms: float | None = None
    repo: str | None = None
    warnings: list[Mapping[str, Any]] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    """Facts about the call, for its span and for payloads with a place for them."""

    def as_json(self) -> dict[str, Any]:
        """`_meta` of the envelope; fields that are not known are left out."""
        body: dict[str, Any] = {
            "schemaVersion": SCHEMA_VERSION,
            "toolingVersion": TOOLING_VERSION,
            "ts": timestamp(time() if self.ts is None else self.ts),
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


def timestamp(moment: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC, as `2026-01-24T12:34:56.789Z`."""
    seconds, milliseconds = divmod(int(moment * 1000), 1000)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=8)  # answers come many to the second
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@dataclass(frozen=True, slots=True)
class Answer:
    """An outcome in its shape: a JSON body, or content blocks, or both."""

    ok: bool
    body: dict[str, Any] | None = None
    content: Sequence[Mapping[str, Any]] | None = None


class Payload(Protocol):
    """One answer shape."""

    @property
    def name(self) -> str:
        """What the contract snapshot calls it."""

    def seal(self, outcome: Outcome, meta: Meta) -> Answer:
        """Put an outcome into this shape."""


def error_of(outcome: Outcome) -> ToolError | None:
    """Why it did not work; None when it did."""
    match outcome:
        case Done():
            return None
        case Cancelled():
            return ToolError(ErrorCode.CANCELLED, "The request was cancelled.")
        case _:
            return outcome.error


class _Envelope:
    """`{ok, result | error, _meta}`: the shape of the code toolset and of the HTTP API."""

    name = "envelope"

    def seal(self, outcome: Outcome, meta: Meta) -> Answer:
        if isinstance(outcome, Done):
            return Answer(True, {"ok": True, "result": outcome.result, "_meta": meta.as_json()})
        error = error_of(outcome)
        assert error is not None  # noqa: S101 - for the type checker
        return Answer(False, {"ok": False, "error": error.as_json(), "_meta": meta.as_json()})


class _Content:
    """MCP content blocks as the tool made them; a plain string becomes one text block."""

    name = "content"

    def seal(self, outcome: Outcome, meta: Meta) -> Answer:  # noqa: ARG002 - no place for it here
        if isinstance(outcome, Done):
            return Answer(True, content=_blocks(outcome.result))
        error = error_of(outcome)
        assert error is not None  # noqa: S101 - for the type checker
        text = f"{error.message}\n{error.hint}" if error.hint else error.message
        facts = error.details or {}
        if not isinstance(facts, Mapping):  # the violations of a schema are a list
            facts = {"details": facts}
        body = {"code": error.code.name, "message": error.message, **facts}
        return Answer(False, body, _blocks(text))


class _Flat:
    """`{ok, ...}`: the object that the tool made, `ok` included, and nothing around it.

    A failure is `{ok: false, reason}` with `errors` (each a path and a message) or a `detail`.
    """

    name = "flat"

    def seal(self, outcome: Outcome, meta: Meta) -> Answer:  # noqa: ARG002 - no place for it here
        if isinstance(outcome, Done):
            return Answer(outcome.result["ok"], outcome.result)
        error = error_of(outcome)
        assert error is not None  # noqa: S101 - for the type checker
        return Answer(False, _flat_failure(error))


def _flat_failure(error: ToolError) -> dict[str, Any]:
    match error.code:
        case ErrorCode.INVALID_REQUEST:
            found = error.details
            if not isinstance(found, list):
                found = [{"instancePath": "", "message": error.message}]
            errors = sorted((_argument(each), each["message"]) for each in found)
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
            return {"ok": False, "reason": error.code.name.lower(), "detail": error.message}


def _argument(violation: Mapping[str, str]) -> str:
    """Where the argument is that a violation is about.

    These errors share a list with those of the value that a tool checks, so an argument that is
    missing gets the path it would have: `/schema` cannot be mistaken for the root of that value.
    """
    path = violation["instancePath"]
    if violation.get("keyword") == "required":
        return path + "/" + violation["message"].split('"')[1]
    return path


class _Launch:
    """`{ok, ...}` of the launch toolset: the tool's own object, `ok` first.

    A failure is `{ok: false, run_id?, error}`, and its `error` always has code, message,
    retryable and details. That shape has no place for a hint, so it stands in the details.
    """

    name = "launch"

    def seal(self, outcome: Outcome, meta: Meta) -> Answer:
        if isinstance(outcome, Done):
            return Answer(True, {"ok": True, **outcome.result})
        error = error_of(outcome)
        assert error is not None  # noqa: S101 - for the type checker
        body: dict[str, Any] = {"ok": False}
        if run_id := meta.notes.get("run_id"):
            body["run_id"] = run_id
        return Answer(False, body | {"error": _launch_error(error)})


def _launch_error(error: ToolError) -> dict[str, Any]:
    refused = error.code is ErrorCode.INVALID_REQUEST
    details = error.details or {}
    if not isinstance(details, Mapping):  # the violations of a schema are a list
        details = {"violations": details}
    if error.code is ErrorCode.INTERNAL:  # whoever raised it need not know that this is bound
        details = {"cause_class": type(error.__cause__ or error).__name__, **details}
    return {
        "code": ErrorCode.INVALID_INPUT.name if refused else error.code.name,
        "message": error.message,
        "retryable": error.retryable,
        "details": {**details, "hint": error.hint} if error.hint else dict(details),
    }


def _blocks(result: str | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    return ({"type": "text", "text": result},) if isinstance(result, str) else result


ENVELOPE: Final[Payload] = _Envelope()
CONTENT: Final[Payload] = _Content()
FLAT: Final[Payload] = _Flat()
LAUNCH: Final[Payload] = _Launch()

ENVELOPE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["ok", "_meta"],
    "properties": {
        "ok": {"type": "boolean"},
        "result": {"type": "object"},
        "error": {
            "type": "object",
            "required": ["code", "message", "retryable"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "retryable": {"type": "boolean"},
                "hint": {"type": "string"},
                "details": {"type": ["object", "array"]},
            },
        },
        "_meta": {
            "type": "object",
            "required": ["schemaVersion", "toolingVersion", "ts"],
            "properties": {
                "schemaVersion": {"type": "string"},
                "toolingVersion": {"type": "string"},
                "ts": {"type": "string", "format": "date-time"},
                "requestId": {"type": "string"},
                "repo": {"type": "string"},
                "durationMs": {"type": "number"},
                "warnings": {"type": "array", "items": {"type": "object"}},
            },
        },
    },
    "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
    "additionalProperties": False,
}
"""The envelope as JSON Schema; a tool's own output schema replaces `result`.

The top level is closed, because nothing may ever be merged into it. `error` and `_meta` stay open:
a client that validates must not break on the optional field that a minor version adds.
"""


def envelope_schema(result: Mapping[str, Any]) -> dict[str, Any]:
    """The envelope around one tool's result."""
    properties = {**ENVELOPE_SCHEMA["properties"], "result": result}
    return {**ENVELOPE_SCHEMA, "properties": properties}
