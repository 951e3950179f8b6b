"""An agent on the client of FastMCP."""

import asyncio
from typing import Any

from agent_loop import make_function, read_registration, run_loop
from fastmcp import Client


async def main() -> None:
    async with Client({"mcpServers": {"cleats": read_registration()}}) as client:
        tools = await client.list_tools()

        async def call_tool(name: str, arguments: Any) -> str:
            try:
                result = await client.call_tool(name, arguments, raise_on_error=False)
            except Exception as error:  # noqa: BLE001 - a refused argument is raised, whatever the option says
                return str(error)
            return "\n".join(block.text for block in result.content)

        await run_loop([make_function(tool.name, tool.description, _get_schema(tool)) for tool in tools], call_tool)


def _get_schema(tool: Any) -> Any:
    return getattr(tool, "input_schema", None) or tool.inputSchema


asyncio.run(main())
