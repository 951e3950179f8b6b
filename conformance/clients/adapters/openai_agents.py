"""An agent on the OpenAI Agents SDK."""

import asyncio

from agent_loop import MAX_TURNS, MODEL_NAME, MODEL_URL, PROMPT, read_registration
from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI

READ_TIMEOUT_SECONDS = 60
"""The SDK's default of 5 s is too short on a busy machine."""


async def main() -> None:
    set_tracing_disabled(True)
    model = OpenAIResponsesModel(MODEL_NAME, AsyncOpenAI(base_url=f"{MODEL_URL}/v1", api_key="not-a-key"))
    async with MCPServerStdio(read_registration(), client_session_timeout_seconds=READ_TIMEOUT_SECONDS) as server:
        agent = Agent(name="refunds", model=model, mcp_servers=[server])
        await Runner.run(agent, PROMPT, max_turns=MAX_TURNS)


asyncio.run(main())
