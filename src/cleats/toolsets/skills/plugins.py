"""Skills that came with Claude plugins: which plugins count here, and where their skills lie.

Two layouts of `installed_plugins.json` are in use: one record for a plugin, or a list of records
with scopes. A record of another project does not count, and of several that do the nearest wins.
"""

import json
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from cleats.settings import Settings
from cleats.toolsets.skills.roots import NOWHERE, project_folders
from cleats.toolsets.skills.skill import Problem, Source, is_speakable

SCOPES = ("local", "project", "user")
"""Where a plugin can be installed or switched, the strongest first."""


class Plugins(NamedTuple):
    """What was found."""

    sources: Sequence[Source]
    problems: Sequence[Problem]


def plugins(settings: Settings) -> Plugins:
    """The places of every plugin that is installed and switched on for this project."""
    if settings.skill_plugins == "off" or settings.claude_dir == NOWHERE:
        return Plugins((), ())
    reader = _Reader(settings)
    return Plugins(list(reader.sources()), reader.problems)


class _Reader:
    def __init__(self, settings: Settings) -> None:
        self.problems: list[Problem] = []
        self._read: dict[Path, Mapping[str, Any]] = {}
        self._home = settings.claude_dir / "plugins"
        self._projects = project_folders(settings)
        self._switches = {
            "user": self._switch(settings.claude_dir / "settings.json"),
            "project": self._nearest("settings.json"),
            "local": self._nearest("settings.local.json"),
        }

    def sources(self) -> Iterator[Source]:
        manifest = self._json(self._home / "installed_plugins.json")
        installed = manifest.get("plugins")
        for key, records in installed.items() if isinstance(installed, dict) else ():
            name, at, marketplace = key.rpartition("@")
            if not at or not name or not is_speakable(key):
                continue
            record = self._record(records)
            if record is None or not self._on(key, record):
                continue
            folder = self._home / str(record["installPath"])  # an absolute path stays as it is
            yield from self._of(folder, name, marketplace)

    def _record(self, records: object) -> Mapping[str, Any] | None:
        """The nearest record that counts in this project."""
        listed = records if isinstance(records, list) else [records]
        counting = [
            each
            for each in listed
            if isinstance(each, dict)
            and isinstance(each.get("installPath"), str)
            and self._counts(each)
        ]
        counting.sort(key=_scope_rank)
        there = [each for each in counting if _is_there(self._home / each["installPath"])]
        return next(iter(there or counting), None)

    def _counts(self, record: Mapping[str, Any]) -> bool:
        if _scope_rank(record) == SCOPES.index("user"):
            return True
        return Path(str(record.get("projectPath", ""))) in self._projects

    def _on(self, key: str, record: Mapping[str, Any]) -> bool:
        for scope in SCOPES:
            switches = self._switches[scope]
            if switches is not None and key in switches:
                return bool(switches[key])
        # Without a list in the place that installed it, everything installed is on.
        return self._switches[SCOPES[_scope_rank(record)]] is None

    def _of(self, folder: Path, name: str, marketplace: str) -> Iterator[Source]:
        label = f"plugin/{quote(name)}"
        if not _is_there(folder):
            self._complain(
                "plugin-folder", f"the folder of plugin {name!r} is not there", folder, "Reinstall"
            )
            return
        for number, below in enumerate(self._folders(folder, name, marketplace)):
            yield Source(
                path=posixpath.normpath(folder / below),
                scope="plugin",
                label=label if number == 0 else f"{label}/{number}",
                plugin=name,
                marketplace=marketplace,
            )

    def _folders(self, folder: Path, name: str, marketplace: str) -> list[str]:
        """Where in a plugin its skills are: as its manifests list them, or anywhere."""
        own = _texts(self._json(folder / ".claude-plugin" / "plugin.json").get("skills"))
        offered = self._offered(folder, name, marketplace)
        if not own and not offered:
            return ["."]
        listed = [*own, *offered]
        if own and (folder / "skills").is_dir():
            listed.insert(0, "skills")  # a plugin's own list adds to the usual place
        inside = [below for below in listed if _is_inside(below)]
        for below in set(listed) - set(inside):
            self._complain(
                "plugin-path", f"plugin {name!r} names a folder outside itself", folder / below, ""
            )
        return list(dict.fromkeys(map(posixpath.normpath, inside)))

    def _offered(self, folder: Path, name: str, marketplace: str) -> list[str]:
        """What the marketplace says the plugin has; several plugins may share one folder."""
        known = self._json(self._home / "known_marketplaces.json").get(marketplace)
        place = known.get("installLocation") if isinstance(known, dict) else None
        shops = [folder, self._home / str(place or Path("marketplaces") / marketplace)]
        for shop in shops:
            listed = self._json(shop / ".claude-plugin" / "marketplace.json").get("plugins")
            for each in listed if isinstance(listed, list) else ():
                if isinstance(each, dict) and each.get("name") == name:
                    return _texts(each.get("skills"))
        return []

    def _nearest(self, file: str) -> Mapping[str, Any] | None:
        for folder in self._projects:
            switches = self._switch(folder / ".claude" / file)
            if switches is not None:
                return switches
        return None

    def _switch(self, path: Path) -> Mapping[str, Any] | None:
        switches = self._json(path).get("enabledPlugins")
        return switches if isinstance(switches, dict) else None

    def _json(self, path: Path) -> Mapping[str, Any]:
        """An object from a file; a file that is not there has nothing to say."""
        if path not in self._read:
            self._read[path] = self._parsed(path)
        return self._read[path]

    def _parsed(self, path: Path) -> Mapping[str, Any]:
        try:
            value = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError, RecursionError) as error:
            self._complain("bad-json", f"it cannot be read: {error}", path, "Repair the file")
            return {}
        return value if isinstance(value, dict) else {}

    def _complain(self, code: str, message: str, path: Path, fix: str) -> None:
        fix = f"{fix}, or remove the plugin." if fix else "Report it to its author."
        self.problems.append(Problem("warning", code, message, fix, str(path)))


def _scope_rank(record: Mapping[str, Any]) -> int:
    scope = record.get("scope")
    return SCOPES.index(scope) if isinstance(scope, str) and scope in SCOPES else len(SCOPES) - 1


def _is_there(folder: Path) -> bool:
    return os.path.isdir(folder)  # noqa: PTH112 - a Path raises for a text that can be no path


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)]


def _is_inside(below: str) -> bool:
    normal = posixpath.normpath(below)
    named = is_speakable(below) and "\0" not in below
    return named and not normal.startswith(("/", "../")) and normal != ".."
