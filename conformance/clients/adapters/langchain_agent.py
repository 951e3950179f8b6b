"""An agent on LangChain with its adapters for MCP."""

import asyncio

from agent_loop import MODEL_NAME, MODEL_URL, PROMPT, read_registration
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI


async def main() -> None:
    model = ChatOpenAI(model=MODEL_NAME, base_url=f"{MODEL_URL}/v1", api_key="not-a-key")
    client = MultiServerMCPClient({"cleats": {**read_registration(), "transport": "stdio"}})
    async with client.session("cleats") as session:
        agent = create_agent(model, await load_mcp_tools(session))
        await agent.ainvoke({"messages": [{"role": "user", "content": PROMPT}]}, {"recursion_limit": 50})


asyncio.run(main())
