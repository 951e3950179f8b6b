"""What an MCP client says, one message at a time, and the answer to what is none."""

from cleats.contract.errors import ErrorCode
from cleats.transports import jsonrpc


def read(body: bytes) -> jsonrpc.Message:
    """One body to one message: JSON-RPC, but that a fraction is no id. Never raises."""
    message = jsonrpc.parse(body)
    if isinstance(message, jsonrpc.Request) and isinstance(message.id, float):
        return refusal('"id" must be a string or an integer')
    return message


def refusal(reason: str, request_id: jsonrpc.Id | None = None) -> jsonrpc.Malformed:
    """A message that is JSON and still nothing to be answered otherwise."""
    return jsonrpc.Malformed(jsonrpc.INVALID_REQUEST, f"Invalid request: {reason}", request_id)


def refused(message: jsonrpc.Malformed) -> bytes:
    """The answer to what is no message."""
    data = {"code": ErrorCode.INVALID_REQUEST.name}
    return jsonrpc.error(message.id, message.code, message.reason, data)
