"""A home and a project with skills in them, and the real server over both."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.settings import Settings
from tests.peer import Peer, started

SERVE = (sys.executable, "-m", "cleats", "serve", "skills")
LONG_AGO = time.time() - 3600
"""When the files of a world were written, unless a test writes them later."""


@dataclass(frozen=True)
class World:
    """Two folders that are nobody's."""

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

    def settings(self, **given: Any) -> Settings:
        """The settings that the real server gets here."""
        here: dict[str, Any] = {
            "home": self.home,
            "config_home": self.home / ".config",
            "claude_dir": self.claude,
            "project_dir": self.project,
            "data_dir": self.folder / "data",
        }
        return Settings(**{**here, **given})

    def user(self, name: str, *words: str, **fields: str) -> Path:
        """A skill of the user's."""
        return skill(self.claude / "skills" / name, *words, **fields)

    def own(self, name: str, *words: str, **fields: str) -> Path:
        """A skill of the project's."""
        return skill(self.project / ".claude" / "skills" / name, *words, **fields)

    def plugins(self, **plugins: Sequence[str]) -> None:
        """Installed plugins of one marketplace, with the names of their skills."""
        installed: dict[str, Any] = {}
        for plugin, names in plugins.items():
            dashed = plugin.replace("_", "-")
            for name in names:
                skill(self.claude / "plugins" / "cache" / dashed / "skills" / name)
            installed[f"{dashed}@market"] = {"installPath": f"cache/{dashed}"}
        self.installed(installed)

    def installed(self, plugins: Mapping[str, Any], version: int = 1) -> None:
        """The manifest of the installed plugins."""
        write(
            self.claude / "plugins" / "installed_plugins.json",
            json.dumps({"version": version, "plugins": plugins}),
        )

    @contextmanager
    def serving(self, *options: str, ready: bool = True, **environ: str) -> Iterator[Peer]:
        """The real server in this world. It looks only once, unless a test says otherwise."""
        quiet = {"CLEATS_SKILL_REFRESH": "0", "CLEATS_SKILL_WATCH": "off"}
        every = {**self.environ, **quiet, **environ}
        with started(*SERVE, *options, home=self.home, ready=ready, **every) as peer:
            yield peer


def skill(folder: Path, description: str = "", body: str = "Do it.\n", **fields: str) -> Path:
    """Write a skill; its name is the folder's, unless a field says otherwise."""
    given = {"name": folder.name, "description": description or f"Knows {folder.name}", **fields}
    header = "".join(f"{key}: {value}\n" for key, value in given.items())
    return write(folder / "SKILL.md", f"---\n{header}---\n\n{body}")


def write(path: Path, text: str | bytes) -> Path:
    """Write a file as if it had been there for long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def replaced(path: Path, text: str) -> None:
    """Write a file anew, all at once, as a careful editor does."""
    aside = path.with_name(f".{path.name}.aside")
    aside.write_bytes(text.encode())
    aside.replace(path)


def loaded(peer: Peer, name: str) -> str:
    """The text of a skill that can be loaded."""
    result = asked(peer, "skill", name=name)
    assert result["isError"] is False, result
    (block,) = result["content"]
    assert block["type"] == "text"
    text: str = block["text"]
    return text


def asked(peer: Peer, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a tool call."""
    request_id = f"{tool} {time.monotonic_ns()}"
    peer.call(request_id, tool, **arguments)
    result: dict[str, Any] = peer.answer(request_id)["result"]
    return result


def answered(peer: Peer, method: str, **params: Any) -> dict[str, Any]:
    """The whole answer to any other request."""
    request_id = f"{method} {time.monotonic_ns()}"
    peer.request(request_id, method, params)
    return peer.answer(request_id)


def description(peer: Peer) -> str:
    """The description of the skill tool as it is now."""
    tools = answered(peer, "tools/list")["result"]["tools"]
    text: str = next(tool for tool in tools if tool["name"] == "skill")["description"]
    return text
