"""The agents on Python libraries: small programs in `adapters/`, each with an environment of its own."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from conformance.clients.catalogue import FAKE_KEY, AgentClient, SessionPlace

ADAPTERS_FOLDER = Path(__file__).parent / "adapters"

# The registrations that are read, by the client that they were written for: one for libraries that
# know the newest protocol, and one for those of 2025.
REGISTRATION_FILES = {"claude-code": ".mcp.json", "gemini": ".gemini/settings.json"}


def _make_library(
    title: str,
    package: str,
    *,
    environment: str,
    adapter: str,
    registered_as: str = "claude-code",
    wrong_argument_answer: str = "",
) -> AgentClient:
    return AgentClient(
        name=adapter,
        title=title,
        package=package,
        registered_as=registered_as,
        scopes=("project",),
        environment=environment,
        command=("python", str(ADAPTERS_FOLDER / f"{adapter}.py")),
        env=_make_env(REGISTRATION_FILES[registered_as]),
        wrong_argument_answer=wrong_argument_answer,
    )


def _make_env(file: str) -> Callable[[SessionPlace], Mapping[str, str]]:
    return lambda place: {
        "MODEL_URL": place.model_url,
        "REGISTRATION_FILE": str(place.project / file),
        "OPENAI_API_KEY": FAKE_KEY,
        "GOOGLE_API_KEY": FAKE_KEY,
        "GOOGLE_GEMINI_BASE_URL": place.model_url,
        "LANGSMITH_TRACING": "false",
        "MCP_USE_ANONYMIZED_TELEMETRY": "false",
        "FASTMCP_CHECK_FOR_UPDATES": "off",
    }


LIBRARY_AGENTS: Sequence[AgentClient] = (
    _make_library("OpenAI Agents", "openai-agents", environment="agents", adapter="openai_agents"),
    _make_library("Pydantic AI", "pydantic-ai-slim", environment="agents", adapter="pydantic_agent"),
    _make_library("LangChain adapters", "langchain-mcp-adapters", environment="langchain", adapter="langchain_agent"),
    _make_library("Google ADK", "google-adk", environment="adk", adapter="adk_agent"),
    _make_library("FastMCP client", "fastmcp", environment="fastmcp", adapter="fastmcp_client"),
    _make_library(
        "mcp-use",
        "mcp-use",
        environment="langchain",
        adapter="mcp_use_agent",
        wrong_argument_answer="matching lines",
    ),
    _make_library("MCP SDK (2025)", "mcp", environment="sdk_old", adapter="mcp_sdk", registered_as="gemini"),
)
