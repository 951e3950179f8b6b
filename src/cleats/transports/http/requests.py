"""Reading a request: its body, its query, its id. Every fault in it is an `ApiError`."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request

from cleats.contract.violations import Violation, make_type_violation
from cleats.transports.http.responses import ApiError, invalid_request
from cleats.transports.jsonrpc import InvalidJsonError, decode_json

_REQUEST_ID_PATTERN = re.compile(r"[!-~]{1,128}")
"""A correlation id that may go into logs and answers unchanged."""


def read_request_id(request: Request) -> str | None:
    """Return the caller's correlation id, or None if it sent no usable one."""
    header = request.headers.get("x-request-id")
    return None if header is None else accept_request_id(header)


def accept_request_id(text: str) -> str | None:
    """Return a correlation id if it may go into logs and answers unchanged, else None."""
    return text if _REQUEST_ID_PATTERN.fullmatch(text) else None


async def read_json_object(request: Request, limit: int) -> dict[str, Any]:
    """Read the body as a JSON object.

    Raises:
        ApiError: 415, 413 or 400.
    """
    value = await read_json_value(request, limit)
    if not isinstance(value, dict):
        raise invalid_request("The body must be a JSON object.")
    return value


async def read_json_value(request: Request, limit: int) -> Any:
    """Read the body as JSON: check the media type first, then the size, then the text.

    Raises:
        ApiError: 415, 413 or 400.
    """
    raw = await read_json_body(request, limit)
    try:
        return decode_json(raw)
    except InvalidJsonError as error:
        raise invalid_request(f"The body is not valid JSON: {error}.") from None


async def read_json_body(request: Request, limit: int) -> bytes:
    """Read the body of a request that says it is JSON, at most `limit` bytes, without decoding it.

    Raises:
        ApiError: 415, 413, or 400 if it ends too early.
    """
    if "application/json" not in request.headers.get("content-type", "").lower():
        raise invalid_request("The body must be JSON: send Content-Type: application/json.", status=415)
    declared = request.headers.get("content-length")
    if declared is not None and declared.isdecimal() and int(declared) > limit:
        raise _body_too_large(limit)
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise _body_too_large(limit)
            parts.append(part)
    except ClientDisconnect:
        raise invalid_request("The body is incomplete.") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _body_too_large(limit: int) -> ApiError:
    error = invalid_request(f"The body is over the limit of {limit} bytes.", status=413)
    error.keeps_connection = False
    return error


def parse_query(request: Request, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the query string into arguments, each strictly by the types in its schema.

    A repeated name is a list. Names that the schema does not have are kept, so that it refuses them.

    Raises:
        ApiError: 400, with every value of a wrong type.
    """
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    arguments: dict[str, Any] = {}
    violations: list[Violation] = []
    for name in request.query_params:
        try:
            texts = request.query_params.getlist(name)
            arguments[name] = _parse_value(texts, _allowed_types(properties.get(name, {})))
        except ValueError as error:
            violations.append(make_type_violation(name, str(error)))
    if violations:
        first, details = violations[0], [violation.as_json() for violation in violations]
        raise invalid_request(f"{first.path}: {first.message}", details=details)
    return arguments


def _allowed_types(rule: Mapping[str, Any]) -> frozenset[str]:
    if kind := rule.get("type"):
        return frozenset([kind] if isinstance(kind, str) else kind)
    branches = (*rule.get("oneOf", ()), *rule.get("anyOf", ()))
    if branches:
        return frozenset().union(*map(_allowed_types, branches))
    return frozenset(["string"]) if "enum" in rule or not rule else frozenset(["object"])


def _parse_value(texts: Sequence[str], kinds: frozenset[str]) -> Any:
    if len(texts) > 1:
        if "array" not in kinds:
            raise ValueError("given more than once")
        return list(texts)
    [text] = texts
    if "string" in kinds:
        return text
    for kind, pattern, convert in _SCALAR_PARSERS:
        if kind in kinds and pattern.fullmatch(text):
            return convert(text)
    if "object" in kinds:
        try:
            return decode_json(text.encode())
        except InvalidJsonError as error:
            raise ValueError(f"not valid JSON: {error}") from None
    if "array" in kinds:
        return [text]
    raise ValueError(f"expected {' or '.join(sorted(kinds))}, not {text[:80]!r}")


_INTEGER_PATTERN = re.compile(r"-?[0-9]{1,15}")
_SCALAR_PARSERS: Sequence[tuple[str, "re.Pattern[str]", Callable[[str], Any]]] = (
    ("boolean", re.compile("true|false"), "true".__eq__),
    ("integer", _INTEGER_PATTERN, int),
    ("number", _INTEGER_PATTERN, int),
    ("number", re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}"), float),
)
