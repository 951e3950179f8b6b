"""An agent on mcp-use, whose adapter for LangChain sends null for every argument that is left out."""

import asyncio
from typing import Any

from agent_loop import make_function, read_registration, run_loop
from mcp_use import MCPClient
from mcp_use.adapters.langchain_adapter import LangChainAdapter


async def main() -> None:
    client = MCPClient({"mcpServers": {"cleats": read_registration()}})
    tools = {tool.name: tool for tool in await LangChainAdapter().create_tools(client)}

    async def call_tool(name: str, arguments: Any) -> str:
        return str(await tools[name].ainvoke(arguments))

    functions = [
        make_function(tool.name, tool.description, tool.args_schema.model_json_schema()) for tool in tools.values()
    ]
    try:
        await run_loop(functions, call_tool)
    finally:
        await client.close_all_sessions()


asyncio.run(main())
