"""What the legacy wire says: definitions, results and the flat error of spec a §5.2."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Done, Failed, Outcome
from cleats.contract.payload import ENVELOPE, FLAT, LAUNCH, Meta, Payload, error_of
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.contract.versions import LEGACY_PROTOCOL_VERSION, SCHEMA_VERSION, TOOLING_VERSION

log = logging.getLogger(__name__)

LIFTED = ("stderr", "stdout", "timeoutMs")
"""Details that have a place of their own in the flat error."""

TRIM = 4000
"""Characters of a process's output that an error may carry; the end is what matters."""

_encode = msgspec.json.Encoder(enc_hook=str).encode


def handshake(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to `initialize`, whatever the client asked for."""
    block = {
        "schemaVersion": SCHEMA_VERSION,
        "toolingVersion": TOOLING_VERSION,
        "transport": "legacy",
        "capabilities": dict(capabilities),
    }
    return {
        "protocolVersion": LEGACY_PROTOCOL_VERSION,
        "capabilities": {
            "tools": {"listChanged": False},
            "experimental": {"pairofcleats": block},
        },
        "serverInfo": {"name": "cleats", "version": TOOLING_VERSION},
    }


def definitions(registry: Registry) -> list[dict[str, Any]]:
    """Every tool, and every older name: these clients were written when it was the name."""
    return [shown for tool in registry for shown in _names(tool)]


def _names(tool: Tool) -> Iterator[dict[str, Any]]:
    shown = {
        "name": tool.name,
        "description": tool.text,
        "inputSchema": dict(tool.input),
        "schemaVersion": tool.version,
        "toolingVersion": TOOLING_VERSION,
    }
    yield shown
    for alias in tool.aliases:
        about = f"Deprecated since {alias.deprecated}: use {tool.name}. {tool.text}"
        yield {**shown, "name": alias.name, "description": about}


def result(payload: Payload | None, outcome: Outcome, meta: Meta) -> dict[str, Any]:
    """A call's end as `tools/call` answers it; no payload when there is no such tool."""
    try:
        return _result(payload, outcome, meta)
    except (TypeError, ValueError, OverflowError, RecursionError):
        log.exception("answer.unspeakable")
        unspeakable = ToolError(ErrorCode.INTERNAL, "The tool's answer is not JSON.")
        return _result(payload, Failed(unspeakable), meta)


def _result(payload: Payload | None, outcome: Outcome, meta: Meta) -> dict[str, Any]:
    error = error_of(outcome)
    if error is not None:
        body = flat(error)
        if payload in (FLAT, LAUNCH):  # both specs bind here, and their fields do not collide
            body = {**(payload.seal(outcome, meta).body or {}), **body}
        return _text(body, failed=True)
    assert payload is not None  # noqa: S101 - what is done has a tool
    assert isinstance(outcome, Done)  # noqa: S101
    if payload is ENVELOPE:
        return _text(outcome.result, failed=False)
    answer = payload.seal(outcome, meta)
    if answer.content is not None:
        return {"content": list(answer.content), **({} if answer.ok else {"isError": True})}
    return _text(answer.body, failed=not answer.ok)


def _text(body: Any, *, failed: bool) -> dict[str, Any]:
    content = [{"type": "text", "text": _encode(body).decode()}]
    return {"content": content, "isError": True} if failed else {"content": content}


def flat(error: ToolError) -> dict[str, Any]:
    """`{message, code}`, and what else there is to say."""
    # Spec a has no code of its own for an unknown name; its table puts it here.
    unknown = error.code is ErrorCode.UNKNOWN_TOOL
    code = ErrorCode.INVALID_REQUEST if unknown else error.code
    body: dict[str, Any] = {"message": error.message, "code": code.name}
    if error.hint:
        body["hint"] = error.hint
    details = error.details
    if isinstance(details, Mapping):
        body |= {name: _trimmed(details[name]) for name in LIFTED if name in details}
        details = {name: value for name, value in details.items() if name not in LIFTED}
    if details:
        body["details"] = details
    return body


def _trimmed(value: Any) -> Any:
    return value.strip()[-TRIM:].lstrip() if isinstance(value, str) else value
