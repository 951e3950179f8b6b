"""A home and a project with skills in them, and the real server for both."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.settings import Settings, make_settings
from tests.support.mcp_client import ServerPeer, start_server

SERVE_COMMAND = (sys.executable, "-m", "cleats", "serve", "skills")
LONG_AGO = time.time() - 3600
"""The modification time of the files, unless a test writes them later."""


@dataclass(frozen=True)
class SkillFolders:
    """Temporary folders for a home, a project and custom skills."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def claude(self) -> Path:
        return self.home / ".claude"

    @property
    def custom(self) -> Path:
        return self.folder / "custom"

    @property
    def environ(self) -> dict[str, str]:
        self.home.mkdir(parents=True, exist_ok=True)
        self.project.mkdir(parents=True, exist_ok=True)
        return {
            "CLAUDE_CONFIG_DIR": str(self.claude),
            "CLEATS_PROJECT_DIR": str(self.project),
            "CLEATS_TELEMETRY": "off",
        }

    def build_settings(self, **overrides: Any) -> Settings:
        """Build the settings that the real server gets here."""
        defaults: dict[str, Any] = {
            "home": self.home,
            "config_home": self.home / ".config",
            "claude_dir": self.claude,
            "project_dir": self.project,
            "data_dir": self.folder / "data",
        }
        return make_settings(**{**defaults, **overrides})

    def write_user_skill(self, name: str, *words: str, **fields: str) -> Path:
        """Write a skill of the user."""
        return write_skill(self.claude / "skills" / name, *words, **fields)

    def write_project_skill(self, name: str, *words: str, **fields: str) -> Path:
        """Write a skill of the project."""
        return write_skill(self.project / ".claude" / "skills" / name, *words, **fields)

    def write_plugins(self, **plugins: Sequence[str]) -> None:
        """Install plugins of one marketplace, given the names of their skills."""
        installed: dict[str, Any] = {}
        for plugin, names in plugins.items():
            plugin_name = plugin.replace("_", "-")
            for name in names:
                write_skill(self.claude / "plugins" / "cache" / plugin_name / "skills" / name)
            installed[f"{plugin_name}@market"] = {"installPath": f"cache/{plugin_name}"}
        self.write_plugin_manifest(installed)

    def write_plugin_manifest(self, plugins: Mapping[str, Any], version: int = 1) -> None:
        """Write the manifest of the installed plugins."""
        write_old_file(
            self.claude / "plugins" / "installed_plugins.json",
            json.dumps({"version": version, "plugins": plugins}),
        )

    @contextmanager
    def serve(self, *options: str, ready: bool = True, **environ: str) -> Iterator[ServerPeer]:
        """Run the real server on these folders; it scans only once unless a test says otherwise."""
        refresh_settings = {"CLEATS_SKILL_REFRESH": "0", "CLEATS_SKILL_WATCH": "off"}
        server_environ = {**self.environ, **refresh_settings, **environ}
        with start_server(*SERVE_COMMAND, *options, home=self.home, ready=ready, **server_environ) as peer:
            yield peer


def write_skill(folder: Path, description: str = "", body: str = "Do it.\n", **fields: str) -> Path:
    """Write a skill; its name is that of the folder unless a field says otherwise."""
    header_fields = {"name": folder.name, "description": description or f"Knows {folder.name}", **fields}
    header = "".join(f"{key}: {value}\n" for key, value in header_fields.items())
    return write_old_file(folder / "SKILL.md", f"---\n{header}---\n\n{body}")


def write_old_file(path: Path, text: str | bytes) -> Path:
    """Write a file with a modification time of long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def replace_file(path: Path, text: str) -> None:
    """Replace a file atomically, as a careful editor does."""
    temporary = path.with_name(f".{path.name}.aside")
    temporary.write_bytes(text.encode())
    temporary.replace(path)


def load_skill(peer: ServerPeer, name: str) -> str:
    """Load a skill, which must succeed, and return its text."""
    result = call_tool(peer, "skill", name=name)
    assert result["isError"] is False, result
    (block,) = result["content"]
    assert block["type"] == "text"
    text: str = block["text"]
    return text


def call_tool(peer: ServerPeer, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its result."""
    request_id = f"{tool} {time.monotonic_ns()}"
    peer.send_call(request_id, tool, **arguments)
    result: dict[str, Any] = peer.wait_for_answer(request_id)["result"]
    return result


def request_method(peer: ServerPeer, method: str, **params: Any) -> dict[str, Any]:
    """Send any other request and return the whole answer."""
    request_id = f"{method} {time.monotonic_ns()}"
    peer.send_request(request_id, method, params)
    return peer.wait_for_answer(request_id)


def read_skill_description(peer: ServerPeer) -> str:
    """Return the current description of the skill tool."""
    tools = request_method(peer, "tools/list")["result"]["tools"]
    text: str = next(tool for tool in tools if tool["name"] == "skill")["description"]
    return text
