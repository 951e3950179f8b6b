"""The floor: an asyncio loop, msgspec, and three methods written by hand.

No SDK and no protocol beyond what the benchmark asks. What a server costs above this is the
price of its features.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import msgspec


class Arguments(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    text: str
    n: int | None = None


class Request(msgspec.Struct):
    method: str
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")


class Call(msgspec.Struct):
    name: str
    arguments: Arguments


ECHO = {
    "name": "echo",
    "description": "Answer the arguments as JSON text.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["text"],
        "additionalProperties": False,
    },
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "bare-asyncio", "version": "0"},
}

encode = msgspec.json.Encoder().encode
decode_request = msgspec.json.Decoder(Request).decode
decode_call = msgspec.json.Decoder(Call).decode


async def call_tool(params: bytes | msgspec.Raw) -> dict[str, Any]:
    arguments = decode_call(params).arguments
    return {"content": [{"type": "text", "text": encode(arguments).decode()}]}


async def answer(line: bytes) -> bytes | None:
    request = decode_request(line)
    if request.id is None:
        return None
    match request.method:
        case "tools/call":
            body = {"result": await call_tool(request.params)}
        case "tools/list":
            body = {"result": {"tools": [ECHO]}}
        case "initialize":
            body = {"result": HELLO}
        case _:
            body = {"error": {"code": -32601, "message": "Method not found"}}
    return encode({"jsonrpc": "2.0", "id": request.id, **body}) + b"\n"


async def serve(reader: asyncio.StreamReader, write: Callable[[bytes], Any]) -> None:
    """Answer each line before reading the next, until the input ends."""
    while line := await reader.readline():
        if (reply := await answer(line)) is not None:
            write(reply)


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, _ = await loop.connect_write_pipe(asyncio.Protocol, sys.stdout)
    await serve(reader, transport.write)


if __name__ == "__main__":
    asyncio.run(main())
