"""The official Python SDK, unadorned: its low-level server on its own stdio transport.

The low-level server does not apply the input schema; that is its default, so it stays.
"""

import asyncio
import json

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

ECHO = types.Tool(
    name="echo",
    description="Answer the arguments as JSON text.",
    input_schema={
        "type": "object",
        "properties": {"text": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["text"],
        "additionalProperties": False,
    },
)


async def list_tools(
    _context: ServerRequestContext, _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[ECHO])


async def call_tool(_context: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = json.dumps(params.arguments or {}, separators=(",", ":"))
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def main() -> None:
    server = Server("stock-sdk", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
