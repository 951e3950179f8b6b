"""The agent clients that Cleats can be registered in: their files, and the form of an entry."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

SERVER_NAME: Final = "cleats"

LEAN_TOOLSETS: Final = ("explore", "skills")
"""The toolsets that a registration serves by default: what an agent needs every day, in few tokens."""

Scope = Literal["user", "project"]
FileFormat = Literal["json", "toml", "yaml"]


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The command line and the environment with which a client starts the server."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def argv(self) -> list[str]:
        return [self.command, *self.args]


EntryMaker = Callable[[ServerCommand], dict[str, Any]]


def _make_entry(server: ServerCommand, **fields: Any) -> dict[str, Any]:
    env = {"env": dict(server.env)} if server.env else {}
    return {**fields, "command": server.command, "args": list(server.args), **env}


def _make_typed_entry(server: ServerCommand) -> dict[str, Any]:
    return _make_entry(server, type="stdio")


def _make_codex_entry(server: ServerCommand) -> dict[str, Any]:
    # Codex gives a server that is not required one second, then answers the first prompt without its tools.
    return {**_make_entry(server), "required": True, "startup_timeout_sec": 30, "tool_timeout_sec": 600}


def _make_copilot_entry(server: ServerCommand) -> dict[str, Any]:
    # Its project file is also Claude Code's, which does not know the type `local`.
    return {**_make_entry(server, type="stdio"), "tools": ["*"]}


def _make_opencode_entry(server: ServerCommand) -> dict[str, Any]:
    env = {"environment": dict(server.env)} if server.env else {}
    return {"type": "local", "command": server.argv, "enabled": True, **env}


def _make_cline_entry(server: ServerCommand) -> dict[str, Any]:
    return {**_make_entry(server), "disabled": False, "timeout": 600}


def _make_named_entry(server: ServerCommand) -> dict[str, Any]:
    return {"name": SERVER_NAME, **_make_entry(server)}


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A supported client."""

    title: str
    files: Mapping[Scope, Mapping[str, str]]
    """The file of each scope, by the name of a system; the name `any` stands for every system."""
    key: str
    """The key of the table of servers in the file."""
    make_entry: EntryMaker = _make_entry
    format: FileFormat = "json"
    add_command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that this client needs: one that refuses our pinned protocol version negotiates."""
    after: str

    def render_block(self, server: ServerCommand) -> str:
        """Return the part of the file that registers the server."""
        entry = self.make_entry(server)
        if self.format == "toml":
            return render_toml_table(entry)
        if self.format == "yaml":
            import yaml  # noqa: PLC0415 - one client has it

            return yaml.safe_dump({self.key: [entry]}, sort_keys=False).rstrip()
        return json.dumps({self.key: {SERVER_NAME: entry}}, indent=2, ensure_ascii=False)


def render_toml_table(entry: Mapping[str, Any]) -> str:
    """Return an entry as a table of Codex's configuration."""
    lines = [f"[mcp_servers.{SERVER_NAME}]"]
    for name, value in entry.items():
        if isinstance(value, dict):
            pairs = ", ".join(f"{key} = {_quote_toml(text)}" for key, text in value.items())
            lines.append(f"{name} = {{ {pairs} }}")
        elif isinstance(value, list):
            lines.append(f"{name} = [{', '.join(map(_quote_toml, value))}]")
        else:
            lines.append(f"{name} = {_quote_toml(value)}")
    return "\n".join(lines)


def _quote_toml(value: object) -> str:
    # The escapes of a basic TOML string are those of JSON, except for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_NEGOTIATE: Final = {"CLEATS_PROTOCOL": "negotiate"}
_IN_SESSION = "`/mcp` in a session shows whether it is connected."

CLIENTS_BY_NAME: Mapping[str, McpClient] = {
    "claude-code": McpClient(
        title="Claude Code",
        files={"user": {"any": "~/.claude.json"}, "project": {"any": ".mcp.json"}},
        key="mcpServers",
        make_entry=_make_typed_entry,
        add_command=("claude", "mcp", "add", "--scope", "user", SERVER_NAME, "--"),
        after=_IN_SESSION,
    ),
    "claude-desktop": McpClient(
        title="Claude Desktop",
        files={
            "user": {
                "Linux": "~/.config/Claude/claude_desktop_config.json",
                "macOS": "~/Library/Application Support/Claude/claude_desktop_config.json",
                "Windows": "~/AppData/Roaming/Claude/claude_desktop_config.json",
            }
        },
        key="mcpServers",
        env=_NEGOTIATE,
        after="Quit Claude Desktop and start it again.",
    ),
    "cursor": McpClient(
        title="Cursor",
        files={"user": {"any": "~/.cursor/mcp.json"}, "project": {"any": ".cursor/mcp.json"}},
        key="mcpServers",
        env=_NEGOTIATE,
        after="Restart Cursor; Customize in its sidebar lists it under MCPs.",
    ),
    "vscode": McpClient(
        title="VS Code",
        files={
            "user": {
                "Linux": "~/.config/Code/User/mcp.json",
                "macOS": "~/Library/Application Support/Code/User/mcp.json",
                "Windows": "~/AppData/Roaming/Code/User/mcp.json",
            },
            "project": {"any": ".vscode/mcp.json"},
        },
        key="servers",
        make_entry=_make_typed_entry,
        after="Press Start above the entry in the file.",
    ),
    "codex": McpClient(
        title="Codex",
        files={"user": {"any": "~/.codex/config.toml"}, "project": {"any": ".codex/config.toml"}},
        key="mcp_servers",
        make_entry=_make_codex_entry,
        format="toml",
        add_command=("codex", "mcp", "add", SERVER_NAME, "--"),
        after=_IN_SESSION,
    ),
    "gemini": McpClient(
        title="Gemini CLI",
        files={"user": {"any": "~/.gemini/settings.json"}, "project": {"any": ".gemini/settings.json"}},
        key="mcpServers",
        env=_NEGOTIATE,
        after=_IN_SESSION,
    ),
    "zed": McpClient(
        title="Zed",
        files={
            "user": {
                "Linux": "~/.config/zed/settings.json",
                "macOS": "~/.config/zed/settings.json",
                "Windows": "~/AppData/Roaming/Zed/settings.json",
            },
            "project": {"any": ".zed/settings.json"},
        },
        key="context_servers",
        env=_NEGOTIATE,
        after="The settings of the agent panel list it; a green dot means that it runs.",
    ),
    "copilot": McpClient(
        title="GitHub Copilot CLI",
        files={"user": {"any": "~/.copilot/mcp-config.json"}, "project": {"any": ".mcp.json"}},
        key="mcpServers",
        make_entry=_make_copilot_entry,
        after="`/mcp show` in a session lists it.",
    ),
    "opencode": McpClient(
        title="opencode",
        files={"user": {"any": "~/.config/opencode/opencode.json"}, "project": {"any": "opencode.json"}},
        key="mcp",
        make_entry=_make_opencode_entry,
        env=_NEGOTIATE,
        after="`opencode mcp list` shows whether it is connected.",
    ),
    "qwen": McpClient(
        title="Qwen Code",
        files={"user": {"any": "~/.qwen/settings.json"}, "project": {"any": ".qwen/settings.json"}},
        key="mcpServers",
        env=_NEGOTIATE,
        after=_IN_SESSION,
    ),
    "cline": McpClient(
        title="Cline",
        files={"user": {"any": "~/.cline/data/settings/cline_mcp_settings.json"}},
        key="mcpServers",
        make_entry=_make_cline_entry,
        env=_NEGOTIATE,
        after="Restart Cline; its list of MCP servers shows it.",
    ),
    "continue": McpClient(
        title="Continue",
        files={"user": {"any": "~/.continue/config.yaml"}},
        key="mcpServers",
        make_entry=_make_named_entry,
        format="yaml",
        env=_NEGOTIATE,
        after="Reload the window, or start `cn` again.",
    ),
}
"""Every client by the name that the commands take."""
