"""An agent on the official SDK of 2025, which hangs up on protocol versions that it does not know."""

import asyncio
from typing import Any

from agent_loop import make_function, read_registration, run_loop
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    server = StdioServerParameters(**read_registration())
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools

        async def call_tool(name: str, arguments: Any) -> str:
            try:
                result = await session.call_tool(name, arguments)
            except McpError as error:
                return str(error)
            return "\n".join(block.text for block in result.content)

        await run_loop([make_function(tool.name, tool.description, tool.inputSchema) for tool in tools], call_tool)


asyncio.run(main())
