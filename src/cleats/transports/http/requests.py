"""What a request says: its body, its query, its id. Everything wrong with it is a `Refusal`."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request

from cleats.contract.violations import Violation, mistyped
from cleats.transports.http.replies import Refusal, invalid
from cleats.transports.parsing import NotJson, decode

_ID = re.compile(r"[!-~]{1,128}")
"""A correlation id that may go into logs and answers as it is."""


def request_id(request: Request) -> str | None:
    """The caller's own correlation id, when it sent a usable one."""
    given = request.headers.get("x-request-id")
    return None if given is None else usable_id(given)


def usable_id(given: str) -> str | None:
    """A correlation id if it may go into logs and answers as it is."""
    return given if _ID.fullmatch(given) else None


async def json_object(request: Request, limit: int) -> dict[str, Any]:
    """The body as a JSON object.

    Raises:
        Refusal: 415, 413 or 400.
    """
    value = await json_value(request, limit)
    if not isinstance(value, dict):
        raise invalid("The body must be a JSON object.")
    return value


async def json_value(request: Request, limit: int) -> Any:
    """The body as JSON: the type is looked at first, then the size, then the text.

    Raises:
        Refusal: 415, 413 or 400.
    """
    if "application/json" not in request.headers.get("content-type", "").lower():
        raise invalid("The body must be JSON: send Content-Type: application/json.", status=415)
    raw = await _body(request, limit)
    try:
        return decode(raw)
    except NotJson as error:
        raise invalid(f"The body is not JSON: {error}.") from None


async def _body(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length")
    if declared is not None and declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            parts.append(part)
    except ClientDisconnect:
        raise invalid("The body ended before it was whole.") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int) -> Refusal:
    refusal = invalid(f"The body is over the limit of {limit} bytes.", status=413)
    refusal.reads_on = False
    return refusal


def query(request: Request, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The query string as arguments, each read as its schema says; strictly, never guessed.

    A repeated name is a list. Names the schema does not have are kept, for it to refuse.

    Raises:
        Refusal: 400, with every value that is not what it should be.
    """
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    arguments: dict[str, Any] = {}
    wrong: list[Violation] = []
    named: dict[str, list[str]] = {}
    for name, value in request.query_params.multi_items():
        named.setdefault(name, []).append(value)
    for name, given in named.items():
        try:
            arguments[name] = _value(given, _kinds(properties.get(name, {})))
        except ValueError as error:
            wrong.append(mistyped(name, str(error)))
    if wrong:
        first, details = wrong[0], [each.as_json() for each in wrong]
        raise invalid(f"{first.path}: {first.message}", details=details)
    return arguments


def _kinds(rule: Mapping[str, Any]) -> frozenset[str]:
    """The types that a property may have, however its schema says so."""
    kind = rule.get("type")
    if isinstance(kind, str):
        return frozenset([kind])
    if isinstance(kind, list):
        return frozenset(kind)
    branches = (*rule.get("oneOf", ()), *rule.get("anyOf", ()))
    if branches:
        return frozenset().union(*map(_kinds, branches))
    return frozenset(["string"]) if "enum" in rule or not rule else frozenset(["object"])


def _value(given: Sequence[str], kinds: frozenset[str]) -> Any:
    if len(given) > 1:
        if "array" not in kinds:
            raise ValueError("given more than once")
        return list(given)
    [text] = given
    if "string" in kinds:
        return text
    for kind, pattern, read in _READERS:
        if kind in kinds and pattern.fullmatch(text):
            return read(text)
    if "object" in kinds:
        return _json(text)
    if "array" in kinds:
        return [text]
    raise ValueError(f"expected {' or '.join(sorted(kinds))}, not {text[:80]!r}")


_WHOLE = re.compile(r"-?[0-9]{1,15}")
_READERS: Sequence[tuple[str, "re.Pattern[str]", Callable[[str], Any]]] = (
    ("boolean", re.compile("true|false"), "true".__eq__),
    ("integer", _WHOLE, int),
    ("number", _WHOLE, int),
    ("number", re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}"), float),
)


def _json(text: str) -> Any:
    try:
        return decode(text.encode())
    except NotJson as error:
        raise ValueError(f"not JSON: {error}") from None
