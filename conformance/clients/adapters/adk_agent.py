"""An agent on Google's Agent Development Kit, which speaks the wire of Gemini."""

import asyncio

from agent_loop import PROMPT, read_registration
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from google.genai import types
from mcp import StdioServerParameters


async def main() -> None:
    server = StdioConnectionParams(server_params=StdioServerParameters(**read_registration()), timeout=60)
    toolset = McpToolset(connection_params=server)
    runner = InMemoryRunner(agent=LlmAgent(name="refunds", model="gemini-2.5-pro", tools=[toolset]), app_name="refunds")
    session = await runner.session_service.create_session(app_name="refunds", user_id="user")
    message = types.Content(role="user", parts=[types.Part(text=PROMPT)])
    async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=message):
        pass
    await toolset.close()


asyncio.run(main())
