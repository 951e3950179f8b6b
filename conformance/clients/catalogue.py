"""The agent clients from npm: how each is run without a person, with the scripted model, on this machine only."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.clients.wires import MODEL_NAME

PROMPT = "Find out how refunds are paid."
FAKE_KEY = "not-a-key"


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """The folders of one session, and the address of the model."""

    home: Path
    project: Path
    model_url: str


Files = Mapping[str, str]
"""Texts of files by their path in the home folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentClient:
    """A client that runs here."""

    name: str
    title: str
    package: str
    command: Sequence[str]
    registered_as: str = ""
    """The name in `cleats install`, if it is not the same."""

    scopes: Sequence[str] = ("user", "project")
    """The scopes to register: the whole script for the first, one call for the other."""

    environment: str = ""
    """The Python environment that it is installed in; npm's folder by default."""

    env: Callable[[SessionPlace], Mapping[str, str]] = lambda _: {}
    settings: Callable[[SessionPlace], Files] = lambda _: {}
    """The user's own settings, which are there before Cleats is registered."""

    setup: Callable[[SessionPlace], Sequence[Sequence[str]]] = lambda _: ()
    """Commands to run before the session."""

    wrong_argument_answer: str = ""
    """What the model reads of a client that refuses or drops a wrong argument itself, before the server sees it."""


def _configure_codex(place: SessionPlace) -> Files:
    lines = [
        f'model = "{MODEL_NAME}"',
        'model_provider = "local"',
        'approval_policy = "never"',
        "check_for_update_on_startup = false",
        "",
        "[features]",  # all of which ask other hosts
        "apps = false",
        "plugins = false",
        "",
        "[analytics]",
        "enabled = false",
        "",
        "[model_providers.local]",
        'name = "local"',
        f'base_url = "{place.model_url}/v1"',
        'wire_api = "responses"',
        'env_key = "LOCAL_KEY"',
        "",
        f'[projects."{place.project}"]',
        'trust_level = "trusted"',
    ]
    return {".codex/config.toml": "\n".join(lines) + "\n"}


def _configure_gemini(_: SessionPlace) -> Files:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    return {".gemini/settings.json": json.dumps(settings)}


def _configure_opencode(place: SessionPlace) -> Files:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{place.model_url}/v1", "apiKey": FAKE_KEY},
        "models": {MODEL_NAME: {"tool_call": True, "limit": {"context": 200_000, "output": 8_000}}},
    }
    settings = {"provider": {"local": provider}, "model": f"local/{MODEL_NAME}", "share": "disabled"}
    return {".config/opencode/opencode.json": json.dumps({**settings, "autoupdate": False})}


def _configure_qwen(_: SessionPlace) -> Files:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    return {".qwen/settings.json": json.dumps(settings)}


def _configure_continue(place: SessionPlace) -> Files:
    lines = [
        "name: Local",
        "version: 1.0.0",
        "schema: v1",
        "models:",
        f"- name: {MODEL_NAME}",
        "  provider: openai",
        f"  model: {MODEL_NAME}",
        f"  apiBase: {place.model_url}/v1",
        f"  apiKey: {FAKE_KEY}",
        "  roles: [chat]",
        "  capabilities: [tool_use]",
    ]
    return {".continue/config.yaml": "\n".join(lines) + "\n"}


AGENT_CLIENTS: Sequence[AgentClient] = (
    AgentClient(
        name="claude-code",
        title="Claude Code",
        package="@anthropic-ai/claude-code",
        command=(
            *("claude", "-p", PROMPT, "--allowedTools", "mcp__cleats"),
            *("--settings", '{"enableAllProjectMcpServers": true}'),
        ),
        env=lambda place: {
            "ANTHROPIC_BASE_URL": place.model_url,
            "ANTHROPIC_API_KEY": FAKE_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    ),
    AgentClient(
        name="codex",
        title="Codex",
        package="@openai/codex",
        command=("codex", "exec", "--skip-git-repo-check", "--sandbox", "read-only", PROMPT),
        env=lambda _: {"LOCAL_KEY": FAKE_KEY},
        settings=_configure_codex,
    ),
    AgentClient(
        name="gemini",
        title="Gemini CLI",
        package="@google/gemini-cli",
        command=("gemini", "-p", PROMPT, "--yolo", "-m", "gemini-2.5-pro"),
        env=lambda place: {
            "GEMINI_API_KEY": FAKE_KEY,
            "GOOGLE_GEMINI_BASE_URL": place.model_url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_TELEMETRY_ENABLED": "false",
        },
        settings=_configure_gemini,
        wrong_argument_answer="must NOT have additional properties",
    ),
    AgentClient(
        name="opencode",
        title="opencode",
        package="opencode-ai",
        command=("opencode", "run", "--auto", PROMPT),
        env=lambda _: {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
        settings=_configure_opencode,
    ),
    AgentClient(
        name="qwen",
        title="Qwen Code",
        package="@qwen-code/qwen-code",
        command=("qwen", "--yolo", "--auth-type", "openai", PROMPT),
        env=lambda place: {
            "OPENAI_API_KEY": FAKE_KEY,
            "OPENAI_BASE_URL": f"{place.model_url}/v1",
            "OPENAI_MODEL": MODEL_NAME,
            "QWEN_TELEMETRY_ENABLED": "false",
        },
        settings=_configure_qwen,
        wrong_argument_answer="must NOT have additional properties",
    ),
    AgentClient(
        name="copilot",
        title="GitHub Copilot CLI",
        package="@github/copilot",
        command=("copilot", "-p", PROMPT, "--allow-all-tools"),
        env=lambda place: {
            "COPILOT_PROVIDER_BASE_URL": f"{place.model_url}/v1",
            "COPILOT_PROVIDER_API_KEY": FAKE_KEY,
            "COPILOT_MODEL": MODEL_NAME,
            "COPILOT_OFFLINE": "true",
            "COPILOT_ALLOW_ALL": "true",
        },
    ),
    AgentClient(
        name="continue",
        title="Continue",
        scopes=("user",),
        package="@continuedev/cli",
        command=("cn", "-p", PROMPT, "--auto"),
        env=lambda _: {"CONTINUE_METRICS_ENABLED": "0"},
        settings=_configure_continue,
    ),
    AgentClient(
        name="cline",
        title="Cline",
        scopes=("user",),
        package="cline",
        command=("cline", "--auto-approve", "true", "--json", PROMPT),
        setup=lambda place: [
            ("cline", "auth", "-p", "openai", "-k", FAKE_KEY, "-m", MODEL_NAME, "-b", f"{place.model_url}/v1")
        ],
        env=lambda _: {"CLINE_NO_AUTO_UPDATE": "1"},
        settings=lambda _: {".cline/data/settings/global-settings.json": '{"telemetryOptOut": true}'},
    ),
)

SKIPPED_CLIENTS: Mapping[str, str] = {
    "Claude Desktop": "a desktop application, not on npm",
    "Cursor": "a desktop application, not on npm; its command line needs an account",
    "VS Code": "a desktop application, not on npm",
    "Zed": "a desktop application, not on npm",
}
"""The clients of `cleats install` that cannot be run here, with the reason."""
