"""Messages of the legacy wire: tool definitions, results and the flat error of spec a §5.2."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Done, Failed, Outcome
from cleats.contract.payload import ENVELOPE, FLAT, LAUNCH, AnswerMeta, Payload, get_outcome_error
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.contract.versions import LEGACY_PROTOCOL_VERSION, SCHEMA_VERSION, TOOLING_VERSION

log = logging.getLogger(__name__)

LIFTED_DETAILS = ("stderr", "stdout", "timeoutMs")
"""Details that become top-level fields of the flat error."""

MAX_OUTPUT_CHARS = 4000
"""The maximum length of process output in an error; the end is kept."""

_encode = msgspec.json.Encoder(enc_hook=str).encode


def build_handshake(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to `initialize`, whatever version the client asked for."""
    capability_block = {
        "schemaVersion": SCHEMA_VERSION,
        "toolingVersion": TOOLING_VERSION,
        "transport": "legacy",
        "capabilities": dict(capabilities),
    }
    return {
        "protocolVersion": LEGACY_PROTOCOL_VERSION,
        "capabilities": {
            "tools": {"listChanged": False},
            "experimental": {"pairofcleats": capability_block},
        },
        "serverInfo": {"name": "cleats", "version": TOOLING_VERSION},
    }


def list_definitions(registry: Registry) -> list[dict[str, Any]]:
    """Return the definitions of every tool and every alias, which these clients still call."""
    return [definition for tool in registry for definition in _define_names(tool)]


def _define_names(tool: Tool) -> Iterator[dict[str, Any]]:
    definition = {
        "name": tool.name,
        "description": tool.current_description,
        "inputSchema": dict(tool.input),
        "schemaVersion": tool.version,
        "toolingVersion": TOOLING_VERSION,
    }
    yield definition
    for alias in tool.aliases:
        description = f"Deprecated since {alias.deprecated}: use {tool.name}. {tool.current_description}"
        yield {**definition, "name": alias.name, "description": description}


def render_result(payload: Payload | None, outcome: Outcome, meta: AnswerMeta) -> dict[str, Any]:
    """Render an outcome as the result of `tools/call`; `payload` is None for an unknown tool."""
    try:
        return _render_outcome(payload, outcome, meta)
    except (TypeError, ValueError, OverflowError, RecursionError):
        log.exception("answer.unspeakable")
        encoding_error = ToolError(ErrorCode.INTERNAL, "The tool's answer is not JSON.")
        return _render_outcome(payload, Failed(encoding_error), meta)


def _render_outcome(payload: Payload | None, outcome: Outcome, meta: AnswerMeta) -> dict[str, Any]:
    error = get_outcome_error(outcome)
    if error is not None:
        body = flatten_error(error)
        if payload in (FLAT, LAUNCH):  # both specs bind here, and their fields do not collide
            body = {**(payload.render_outcome(outcome, meta).body or {}), **body}
        return _render_text(body, failed=True)
    assert payload is not None  # noqa: S101 - what is done has a tool
    assert isinstance(outcome, Done)  # noqa: S101
    if payload is ENVELOPE:
        return _render_text(outcome.result, failed=False)
    answer = payload.render_outcome(outcome, meta)
    if answer.content is not None:
        return {"content": list(answer.content), **({} if answer.ok else {"isError": True})}
    return _render_text(answer.body, failed=not answer.ok)


def _render_text(body: Any, *, failed: bool) -> dict[str, Any]:
    content = [{"type": "text", "text": _encode(body).decode()}]
    return {"content": content, "isError": True} if failed else {"content": content}


def flatten_error(error: ToolError) -> dict[str, Any]:
    """Return the flat error: `{message, code}` and any hint, lifted fields and details."""
    # Spec a has no separate code for an unknown tool; its table maps it to INVALID_REQUEST.
    unknown = error.code is ErrorCode.UNKNOWN_TOOL
    code = ErrorCode.INVALID_REQUEST if unknown else error.code
    body: dict[str, Any] = {"message": error.message, "code": code.name}
    if error.hint:
        body["hint"] = error.hint
    details = error.details
    if isinstance(details, Mapping):
        body |= {name: _trim_output(details[name]) for name in LIFTED_DETAILS if name in details}
        details = {name: value for name, value in details.items() if name not in LIFTED_DETAILS}
    if details:
        body["details"] = details
    return body


def _trim_output(value: Any) -> Any:
    return value.strip()[-MAX_OUTPUT_CHARS:].lstrip() if isinstance(value, str) else value
