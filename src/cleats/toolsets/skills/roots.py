"""Where skills lie on a machine, the strongest place first.

What a place is called is told here once; nothing is looked up on disk but the way from the
project's folder up to the root of its repository.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from cleats.settings import Settings
from cleats.toolsets.skills.skill import Source

OWN = (".agent", ".agents", ".claude")
"""The folders that belong to no one agent, and Claude's, in the order of their strength."""

PROJECT_AGENTS = {
    "codex": ".codex/skills",
    "cursor": ".cursor/skills",
    "gemini": ".gemini/skills",
    "github": ".github/skills",
    "goose": ".goose/skills",
    "opencode": ".opencode/skills",
    "windsurf": ".windsurf/skills",
}
USER_AGENTS = {
    "codex": ".codex/skills",
    "copilot": ".copilot/skills",
    "cursor": ".cursor/skills",
    "gemini": ".gemini/skills",
    "windsurf": ".codeium/windsurf/skills",
}
CONFIG_AGENTS = {
    "config-agents": "agents/skills",
    "goose": "goose/skills",
    "opencode": "opencode/skills",
}
SYSTEM_AGENTS = {"codex": "/etc/codex/skills"}

NOWHERE = Path()
"""A folder that the settings do not know."""


def sources(settings: Settings) -> list[Source]:
    """Every place but the plugins, in order; a folder that is two of them is the stronger one."""
    found: dict[str, Source] = {}
    for source in _sources(settings):
        found.setdefault(source.path, source)
    return list(found.values())


def _sources(settings: Settings) -> Iterator[Source]:
    for number, folder in enumerate(settings.skill_dirs, 1):
        label = "custom" if number == 1 else f"custom-{number}"
        yield Source(path=str(folder), scope="custom", label=label, expected=True)
    project = list(enumerate(project_folders(settings)))
    own = {name.removeprefix("."): f"{name}/skills" for name in OWN}
    at_home = settings.home != NOWHERE
    for level, folder in project:
        yield from _project(folder, level, own)
    if at_home:
        yield from _user(settings.home, {n: b for n, b in own.items() if n != "claude"})
        yield from _user(settings.claude_dir, {"claude": "skills"})
    for level, folder in project:
        yield from _project(folder, level, PROJECT_AGENTS)
    if at_home:
        yield from _user(settings.home, USER_AGENTS)
        yield from _user(settings.config_home, CONFIG_AGENTS)
        for agent, path in SYSTEM_AGENTS.items():
            yield Source(path=path, scope="system", label=f"system/{agent}", agent=agent)


def project_folders(settings: Settings) -> list[Path]:
    """From the project's folder up to the root of its repository; outside one only itself.

    The home folder is never a project: what lies there is the user's.
    """
    start = settings.project_dir
    if start == NOWHERE:
        return []
    chain = [start, *start.parents]
    root = next((n for n, folder in enumerate(chain) if (folder / ".git").exists()), 0)
    folders = chain[: root + 1]
    return folders[: folders.index(settings.home)] if settings.home in folders else folders


def _project(folder: Path, level: int, agents: Mapping[str, str]) -> Iterator[Source]:
    prefix = "project" if level == 0 else f"project/up{level}"
    for agent, below in agents.items():
        path = str(folder / below)
        yield Source(path=path, scope="project", label=f"{prefix}/{agent}", agent=agent)


def _user(base: Path, agents: Mapping[str, str]) -> Iterator[Source]:
    for agent, below in agents.items():
        yield Source(path=str(base / below), scope="user", label=f"user/{agent}", agent=agent)
