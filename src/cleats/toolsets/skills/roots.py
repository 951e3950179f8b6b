"""The folders of skills on a machine, the strongest first.

Only this module knows the names of the folders; the disk is read only to find the way from the
project's folder up to the root of its repository.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from cleats.settings import Settings
from cleats.toolsets.skills.skill import SkillSource

SHARED_FOLDERS = (".agent", ".agents", ".claude")
"""The folders that belong to no single agent, and Claude's, the strongest first."""

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

UNKNOWN_FOLDER = Path()
"""The value of a folder that the settings do not have."""


def list_sources(settings: Settings) -> list[SkillSource]:
    """Return every source except plugins, in order; a repeated folder keeps its stronger role."""
    sources_by_path: dict[str, SkillSource] = {}
    for source in _iter_sources(settings):
        sources_by_path.setdefault(source.path, source)
    return list(sources_by_path.values())


def _iter_sources(settings: Settings) -> Iterator[SkillSource]:
    for number, folder in enumerate(settings.skills.dirs, 1):
        label = "custom" if number == 1 else f"custom-{number}"
        yield SkillSource(path=str(folder), scope="custom", label=label, expected=True)
    project = list(enumerate(list_project_folders(settings)))
    shared_folders = {name.removeprefix("."): f"{name}/skills" for name in SHARED_FOLDERS}
    has_home = settings.home != UNKNOWN_FOLDER
    for level, folder in project:
        yield from _project_sources(folder, level, shared_folders)
    if has_home:
        yield from _user_sources(
            settings.home,
            {
                agent_name: relative_path
                for agent_name, relative_path in shared_folders.items()
                if agent_name != "claude"
            },
        )
        yield from _user_sources(settings.claude_dir, {"claude": "skills"})
    for level, folder in project:
        yield from _project_sources(folder, level, PROJECT_AGENTS)
    if has_home:
        yield from _user_sources(settings.home, USER_AGENTS)
        yield from _user_sources(settings.config_home, CONFIG_AGENTS)
        for agent, path in SYSTEM_AGENTS.items():
            yield SkillSource(path=path, scope="system", label=f"system/{agent}", agent=agent)


def list_project_folders(settings: Settings) -> list[Path]:
    """Return the folders from the project up to its repository root; without one only the project.

    The home folder is never a project: skills there belong to the user.
    """
    start = settings.project_dir
    if start == UNKNOWN_FOLDER:
        return []
    chain = [start, *start.parents]
    root = next((index for index, folder in enumerate(chain) if (folder / ".git").exists()), 0)
    folders = chain[: root + 1]
    return folders[: folders.index(settings.home)] if settings.home in folders else folders


def _project_sources(folder: Path, level: int, agents: Mapping[str, str]) -> Iterator[SkillSource]:
    prefix = "project" if level == 0 else f"project/up{level}"
    for agent, relative_path in agents.items():
        path = str(folder / relative_path)
        yield SkillSource(path=path, scope="project", label=f"{prefix}/{agent}", agent=agent)


def _user_sources(base: Path, agents: Mapping[str, str]) -> Iterator[SkillSource]:
    for agent, relative_path in agents.items():
        yield SkillSource(path=str(base / relative_path), scope="user", label=f"user/{agent}", agent=agent)
