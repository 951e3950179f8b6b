"""An agent on Pydantic AI."""

import asyncio

from agent_loop import MODEL_NAME, MODEL_URL, PROMPT, read_registration
from pydantic_ai import Agent
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main() -> None:
    model = OpenAIChatModel(MODEL_NAME, provider=OpenAIProvider(base_url=f"{MODEL_URL}/v1", api_key="not-a-key"))
    toolset = MCPToolset(StdioTransport(**read_registration()), init_timeout=60, read_timeout=60, max_retries=5)
    agent = Agent(model, toolsets=[toolset])
    async with agent:
        await agent.run(PROMPT)


asyncio.run(main())
