"""JSON-RPC errors as MCP clients see them: a number for the protocol, a string code for programs.

Every error that leaves carries `data.code`, also those that the SDK raises itself.
"""

import logging
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data

from cleats.contract.errors import INTERNAL_ERROR, ErrorCode, ToolError
from cleats.contract.violations import mistyped

log = logging.getLogger(__name__)


def protocol_error(error: ToolError) -> MCPError:
    """A call that never ran, as a JSON-RPC error."""
    data = error.as_json()
    del data["retryable"]  # the error table says it for every code that gets here
    return MCPError(error.code.rpc, error.message, data)


def refusal(message: str, details: Any = None) -> MCPError:
    """A request that is wrong before any tool is involved."""
    return protocol_error(ToolError(ErrorCode.INVALID_REQUEST, message, details=details))


def violation(name: str, expected: str) -> MCPError:
    """A param of the wrong type, reported like a violation of a tool's own schema."""
    found = mistyped(name, f"expected {expected}")
    return refusal(f"{found.path}: {found.message}", [found.as_json()])


def coded(number: int, data: Any) -> dict[str, Any]:
    """Error data with its string code, whatever the SDK put there."""
    if isinstance(data, dict) and "code" in data:
        return data
    code = ErrorCode.INTERNAL if number == INTERNAL_ERROR else ErrorCode.INVALID_REQUEST
    if isinstance(data, dict):
        return {**data, "code": code.name}
    return {"code": code.name, "details": data} if data else {"code": code.name}


def from_exception(crash: Exception, what: str) -> MCPError:
    """Whatever a handler of the SDK raised, fit for the wire. Unknown ones say nothing inside."""
    if isinstance(crash, ToolError):  # of a toolset that was asked for a resource or a prompt
        return MCPError(crash.code.rpc, crash.message, crash.as_json())
    known = handler_exception_to_error_data(crash)
    if known is not None:
        return MCPError(known.code, known.message, coded(known.code, known.data))
    log.error("request.crash what=%s", what, exc_info=crash)
    data = {"code": ErrorCode.INTERNAL.name, "details": {"cause_class": type(crash).__name__}}
    return MCPError(INTERNAL_ERROR, "Internal error", data)
