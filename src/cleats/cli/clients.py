"""The agent clients that Cleats can be registered in: their files, and the form of an entry."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

SERVER_NAME: Final = "cleats"
SYSTEM_NAMES: Final = {"darwin": "macOS", "linux": "Linux", "win32": "Windows"}

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
ClientFiles = Mapping[Scope, Mapping[str, str]]
"""The file of each scope, by the name of a system; the name `any` stands for every system."""

NO_FIELDS: Final[Mapping[str, Any]] = {}


def _make_entry(
    server: ServerCommand, first: Mapping[str, Any] = NO_FIELDS, last: Mapping[str, Any] = NO_FIELDS
) -> dict[str, Any]:
    env = {"env": dict(server.env)} if server.env else {}
    return {**first, "command": server.command, "args": list(server.args), **env, **last}


def _make_opencode_entry(server: ServerCommand) -> dict[str, Any]:
    env = {"environment": dict(server.env)} if server.env else {}
    return {"type": "local", "command": server.argv, "enabled": True, **env}


_make_typed_entry = partial(_make_entry, first={"type": "stdio"})

_NEGOTIATE: Final = {"CLEATS_PROTOCOL": "negotiate"}


@dataclass(frozen=True, slots=True)
class McpClient:
    """A supported client."""

    title: str
    files: ClientFiles
    after: str
    """What to do once the server is registered."""
    key: str = "mcpServers"
    """The key of the table of servers in the file."""
    make_entry: EntryMaker = _make_entry
    format: FileFormat = "json"
    add_command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=_NEGOTIATE.copy)
    """Variables that this client needs: most refuse our pinned protocol version, and negotiate."""

    def find_file(self, scope: Scope) -> str:
        """Return the file of a scope on this system; on an unknown one, that of Linux."""
        by_system = self.files[scope]
        return by_system.get(SYSTEM_NAMES.get(sys.platform, ""), next(iter(by_system.values())))

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


def _files(user: str, project: str = "") -> ClientFiles:
    return {"user": {"any": user}, **_project_file(project)}


def _app_files(path: str, project: str = "") -> ClientFiles:
    """Return the files of a desktop application, below its folder of settings on each system."""
    folders = {"Linux": "~/.config", "macOS": "~/Library/Application Support", "Windows": "~/AppData/Roaming"}
    return {"user": {system: f"{folder}/{path}" for system, folder in folders.items()}, **_project_file(project)}


def _project_file(path: str) -> ClientFiles:
    return {"project": {"any": path}} if path else {}


_ZED_FILE = "~/.config/zed/settings.json"
_ZED_FILES = {"Linux": _ZED_FILE, "macOS": _ZED_FILE, "Windows": "~/AppData/Roaming/Zed/settings.json"}
_IN_SESSION = "`/mcp` in a session shows whether it is connected."

CLIENTS_BY_NAME: Mapping[str, McpClient] = {
    "claude-code": McpClient(
        "Claude Code",
        _files("~/.claude.json", ".mcp.json"),
        _IN_SESSION,
        make_entry=_make_typed_entry,
        add_command=("claude", "mcp", "add", "--scope", "user", SERVER_NAME, "--"),
        env={},
    ),
    "claude-desktop": McpClient(
        "Claude Desktop",
        _app_files("Claude/claude_desktop_config.json"),
        "Quit Claude Desktop and start it again.",
    ),
    "cursor": McpClient(
        "Cursor",
        _files("~/.cursor/mcp.json", ".cursor/mcp.json"),
        "Restart Cursor; Customize in its sidebar lists it under MCPs.",
    ),
    "vscode": McpClient(
        "VS Code",
        _app_files("Code/User/mcp.json", ".vscode/mcp.json"),
        "Press Start above the entry in the file.",
        key="servers",
        make_entry=_make_typed_entry,
        env={},
    ),
    "codex": McpClient(
        "Codex",
        _files("~/.codex/config.toml", ".codex/config.toml"),
        _IN_SESSION,
        key="mcp_servers",
        # Codex gives a server that is not required one second, then answers the first prompt without its tools.
        make_entry=partial(_make_entry, last={"required": True, "startup_timeout_sec": 30, "tool_timeout_sec": 600}),
        format="toml",
        add_command=("codex", "mcp", "add", SERVER_NAME, "--"),
        env={},
    ),
    "gemini": McpClient("Gemini CLI", _files("~/.gemini/settings.json", ".gemini/settings.json"), _IN_SESSION),
    "zed": McpClient(
        "Zed",
        {"user": _ZED_FILES, "project": {"any": ".zed/settings.json"}},
        "The settings of the agent panel list it; a green dot means that it runs.",
        key="context_servers",
    ),
    "copilot": McpClient(
        "GitHub Copilot CLI",
        _files("~/.copilot/mcp-config.json", ".mcp.json"),
        "`/mcp show` in a session lists it.",
        # Its project file is also Claude Code's, which does not know the type `local`.
        make_entry=partial(_make_typed_entry, last={"tools": ["*"]}),
        env={},
    ),
    "opencode": McpClient(
        "opencode",
        _files("~/.config/opencode/opencode.json", "opencode.json"),
        "`opencode mcp list` shows whether it is connected.",
        key="mcp",
        make_entry=_make_opencode_entry,
    ),
    "qwen": McpClient("Qwen Code", _files("~/.qwen/settings.json", ".qwen/settings.json"), _IN_SESSION),
    "cline": McpClient(
        "Cline",
        _files("~/.cline/data/settings/cline_mcp_settings.json"),
        "Restart Cline; its list of MCP servers shows it.",
        make_entry=partial(_make_entry, last={"disabled": False, "timeout": 600}),
    ),
    "continue": McpClient(
        "Continue",
        _files("~/.continue/config.yaml"),
        "Reload the window, or start `cn` again.",
        make_entry=partial(_make_entry, first={"name": SERVER_NAME}),
        format="yaml",
    ),
}
"""Every client by the name that the commands take."""
