"""The folders of skills on a machine, the strongest first: named ones, agents' folders, plugins.

Only this module knows the names of the folders. The disk is read only to find the way from the project's folder up to
the root of its repository, and for the manifests of Claude plugins. Two layouts of `installed_plugins.json` are in use:
one record per plugin, or a list of records with scopes. A record of another project does not apply, and of several that
do the nearest wins.
"""

import json
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from cleats.settings import Settings
from cleats.toolsets.skills.skill import SkillProblem, SkillScope, SkillSource, is_encodable

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
CONFIG_AGENTS = {"config-agents": "agents/skills", "goose": "goose/skills", "opencode": "opencode/skills"}
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
        yield from _agent_sources("project", folder, shared_folders, level)
    if has_home:
        agents = {agent: relative_path for agent, relative_path in shared_folders.items() if agent != "claude"}
        yield from _agent_sources("user", settings.home, agents)
        yield from _agent_sources("user", settings.claude_dir, {"claude": "skills"})
    for level, folder in project:
        yield from _agent_sources("project", folder, PROJECT_AGENTS, level)
    if has_home:
        yield from _agent_sources("user", settings.home, USER_AGENTS)
        yield from _agent_sources("user", settings.config_home, CONFIG_AGENTS)
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


def _agent_sources(scope: SkillScope, folder: Path, agents: Mapping[str, str], level: int = 0) -> Iterator[SkillSource]:
    prefix = f"{scope}/up{level}" if level else scope
    for agent, relative_path in agents.items():
        yield SkillSource(path=str(folder / relative_path), scope=scope, label=f"{prefix}/{agent}", agent=agent)


PLUGIN_SCOPES = ("local", "project", "user")
"""The scopes in which a plugin can be installed or enabled, the strongest first."""


class PluginSources(NamedTuple):
    """The skill folders of plugins, and the problems with them."""

    sources: Sequence[SkillSource]
    problems: Sequence[SkillProblem]


def find_plugins(settings: Settings) -> PluginSources:
    """Return the skill folders of every plugin that is installed and enabled for this project."""
    if settings.skills.plugins == "off" or settings.claude_dir == UNKNOWN_FOLDER:
        return PluginSources((), ())
    reader = _PluginReader(settings)
    return PluginSources(list(reader.iter_sources()), reader.problems)


class _PluginReader:
    def __init__(self, settings: Settings) -> None:
        self.problems: list[SkillProblem] = []
        self._documents: dict[Path, Mapping[str, Any]] = {}
        self._plugins_folder = settings.claude_dir / "plugins"
        self._project_folders = list_project_folders(settings)
        self._enabled_by_scope = {
            "user": self._read_enabled(settings.claude_dir / "settings.json"),
            "project": self._read_nearest_enabled("settings.json"),
            "local": self._read_nearest_enabled("settings.local.json"),
        }

    def iter_sources(self) -> Iterator[SkillSource]:
        manifest = self._read_object(self._plugins_folder / "installed_plugins.json")
        installed = manifest.get("plugins")
        for key, records in installed.items() if isinstance(installed, dict) else ():
            name, separator, marketplace = key.rpartition("@")
            if not separator or not name or not is_encodable(key):
                continue
            record = self._select_record(records)
            if record is None or not self._is_enabled(key, record):
                continue
            folder = self._plugins_folder / str(record["installPath"])  # an absolute path stays as it is
            yield from self._plugin_sources(folder, name, marketplace)

    def _select_record(self, records: object) -> Mapping[str, Any] | None:
        """Return the nearest record that applies to this project."""
        candidates = records if isinstance(records, list) else [records]
        applicable = [
            record
            for record in candidates
            if isinstance(record, dict) and isinstance(record.get("installPath"), str) and self._applies_here(record)
        ]
        applicable.sort(key=_scope_rank)
        existing = [record for record in applicable if _is_folder(self._plugins_folder / record["installPath"])]
        return next(iter(existing or applicable), None)

    def _applies_here(self, record: Mapping[str, Any]) -> bool:
        if _scope_rank(record) == PLUGIN_SCOPES.index("user"):
            return True
        return Path(str(record.get("projectPath", ""))) in self._project_folders

    def _is_enabled(self, key: str, record: Mapping[str, Any]) -> bool:
        for scope in PLUGIN_SCOPES:
            enabled = self._enabled_by_scope[scope]
            if enabled is not None and key in enabled:
                return bool(enabled[key])
        # Without a list in the scope that installed it, everything installed is enabled.
        return self._enabled_by_scope[PLUGIN_SCOPES[_scope_rank(record)]] is None

    def _plugin_sources(self, folder: Path, name: str, marketplace: str) -> Iterator[SkillSource]:
        label = f"plugin/{quote(name)}"
        if not _is_folder(folder):
            self._add_problem("plugin-folder", f"the folder of plugin {name!r} does not exist", folder, "Reinstall")
            return
        for number, relative_path in enumerate(self._list_skill_folders(folder, name, marketplace)):
            yield SkillSource(
                path=posixpath.normpath(folder / relative_path),
                scope="plugin",
                label=label if number == 0 else f"{label}/{number}",
                plugin=name,
                marketplace=marketplace,
            )

    def _list_skill_folders(self, folder: Path, name: str, marketplace: str) -> list[str]:
        """Return the skill folders that the plugin's manifests list, or the whole plugin."""
        declared = _list_texts(self._read_object(folder / ".claude-plugin" / "plugin.json").get("skills"))
        offered = self._marketplace_folders(folder, name, marketplace)
        if not declared and not offered:
            return ["."]
        candidates = [*declared, *offered]
        if declared and (folder / "skills").is_dir():
            candidates.insert(0, "skills")  # a plugin's own list adds to the usual place
        valid_paths = [relative_path for relative_path in candidates if _is_inside(relative_path)]
        for relative_path in set(candidates) - set(valid_paths):
            self._add_problem(
                "plugin-path", f"plugin {name!r} names a folder outside itself", folder / relative_path, ""
            )
        return list(dict.fromkeys(map(posixpath.normpath, valid_paths)))

    def _marketplace_folders(self, folder: Path, name: str, marketplace: str) -> list[str]:
        """Return the plugin's folders by the marketplace; several plugins may share one folder."""
        marketplace_record = self._read_object(self._plugins_folder / "known_marketplaces.json").get(marketplace)
        install_location = marketplace_record.get("installLocation") if isinstance(marketplace_record, dict) else None
        manifest_folders = [folder, self._plugins_folder / str(install_location or Path("marketplaces") / marketplace)]
        for manifest_folder in manifest_folders:
            entries = self._read_object(manifest_folder / ".claude-plugin" / "marketplace.json").get("plugins")
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, dict) and entry.get("name") == name:
                    return _list_texts(entry.get("skills"))
        return []

    def _read_nearest_enabled(self, file: str) -> Mapping[str, Any] | None:
        tables = (self._read_enabled(folder / ".claude" / file) for folder in self._project_folders)
        return next((enabled for enabled in tables if enabled is not None), None)

    def _read_enabled(self, path: Path) -> Mapping[str, Any] | None:
        enabled = self._read_object(path).get("enabledPlugins")
        return enabled if isinstance(enabled, dict) else None

    def _read_object(self, path: Path) -> Mapping[str, Any]:
        """Return the object in a JSON file; a missing file gives an empty one."""
        if path not in self._documents:
            self._documents[path] = self._parse_file(path)
        return self._documents[path]

    def _parse_file(self, path: Path) -> Mapping[str, Any]:
        try:
            value = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError, RecursionError) as error:
            self._add_problem("bad-json", f"it cannot be read: {error}", path, "Repair the file")
            return {}
        return value if isinstance(value, dict) else {}

    def _add_problem(self, code: str, message: str, path: Path, fix: str) -> None:
        fix = f"{fix}, or remove the plugin." if fix else "Report it to its author."
        self.problems.append(SkillProblem("warning", code, message, fix, str(path)))


def _scope_rank(record: Mapping[str, Any]) -> int:
    scope = record.get("scope")
    return PLUGIN_SCOPES.index(scope) if isinstance(scope, str) and scope in PLUGIN_SCOPES else len(PLUGIN_SCOPES) - 1


def _is_folder(folder: Path) -> bool:
    return os.path.isdir(folder)  # noqa: PTH112 - a Path raises for a text that can be no path


def _list_texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str)]


def _is_inside(relative_path: str) -> bool:
    normalized = posixpath.normpath(relative_path)
    is_usable = is_encodable(relative_path) and "\0" not in relative_path
    return is_usable and not normalized.startswith(("/", "../")) and normalized != ".."
