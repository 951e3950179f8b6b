"""Parsing of MCP messages, and the answer to invalid ones."""

import logging
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data

from cleats.contract.errors import INTERNAL_ERROR, ErrorCode, ToolError
from cleats.contract.violations import make_type_violation
from cleats.transports import jsonrpc


def parse_message(body: bytes) -> jsonrpc.RpcMessage:
    """Parse one body into one message. Never raises.

    The rules are those of JSON-RPC, except that a fraction is not a valid id.
    """
    message = jsonrpc.parse_message(body)
    if isinstance(message, jsonrpc.Request) and isinstance(message.id, float):
        return malformed_request('"id" must be a string or an integer')
    return message


def malformed_request(reason: str, request_id: jsonrpc.RequestId | None = None) -> jsonrpc.MalformedMessage:
    """Return a malformed message for JSON that is not a valid request."""
    return jsonrpc.MalformedMessage(jsonrpc.INVALID_REQUEST, f"Invalid request: {reason}", request_id)


def encode_refusal(message: jsonrpc.MalformedMessage) -> bytes:
    """Encode the error response to a malformed message."""
    data = {"code": ErrorCode.INVALID_REQUEST.name}
    return jsonrpc.encode_error(message.id, message.code, message.reason, data)


log = logging.getLogger(__name__)


def protocol_error(error: ToolError) -> MCPError:
    """Return the error of a call that never ran as a JSON-RPC error."""
    data = error.as_json()
    del data["retryable"]  # the error table defines it for every code that gets here
    return MCPError(error.code.rpc, error.message, data)


def invalid_request_error(message: str, details: Any = None) -> MCPError:
    """Return the error for a request that is invalid before any tool is involved."""
    return protocol_error(ToolError(ErrorCode.INVALID_REQUEST, message, details=details))


def mistyped_param_error(name: str, expected: str) -> MCPError:
    """Return the error for a param of the wrong type, like a violation of a tool's schema."""
    mismatch = make_type_violation(name, f"expected {expected}")
    return invalid_request_error(f"{mismatch.path}: {mismatch.message}", [mismatch.as_json()])


def add_error_code(number: int, data: Any) -> dict[str, Any]:
    """Return error data with its string code, whatever the SDK put there."""
    if isinstance(data, dict) and "code" in data:
        return data
    code = ErrorCode.INTERNAL if number == INTERNAL_ERROR else ErrorCode.INVALID_REQUEST
    if isinstance(data, dict):
        return {**data, "code": code.name}
    return {"code": code.name, "details": data} if data else {"code": code.name}


def error_from_exception(crash: Exception, method: str) -> MCPError:
    """Return an exception of an SDK handler as a wire error. Unknown ones reveal no internals."""
    if isinstance(crash, ToolError):  # from a toolset's resource or prompt
        return MCPError(crash.code.rpc, crash.message, crash.as_json())
    error_data = handler_exception_to_error_data(crash)
    if error_data is not None:
        return MCPError(error_data.code, error_data.message, add_error_code(error_data.code, error_data.data))
    log.error("request.crash what=%s", method, exc_info=crash)
    data = {"code": ErrorCode.INTERNAL.name, "details": {"cause_class": type(crash).__name__}}
    return MCPError(INTERNAL_ERROR, "Internal error", data)
