"""Filters that include or exclude skills by pattern.

A pattern is a name or a glob, matched against short and full names; `root:PLACE` matches everything from a place
(`project`, `user`, `claude`, `user/claude`, …), `plugin:NAME` everything from a plugin. Case is ignored.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from cleats.settings import Settings
from cleats.system.atomic_files import replace_text
from cleats.toolsets.skills.skill import DISABLED_FILE_NAME, SKILL_FILE_NAME, Skill, SkillProblem

SkillTest: TypeAlias = Callable[[Skill], bool]


class SkillFilter:
    """A filter that includes, then excludes. Without include patterns everything is included."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str]) -> None:
        self._include = {pattern: _compile_pattern(pattern) for pattern in include}
        self._exclude = {pattern: _compile_pattern(pattern) for pattern in exclude}

    def __bool__(self) -> bool:
        return bool(self._include or self._exclude)

    def accepts(self, skill: Skill) -> bool:
        """Return whether a skill passes."""
        if self._include and not any(test(skill) for test in self._include.values()):
            return False
        return not any(test(skill) for test in self._exclude.values())

    def report_unused(self, skills: Sequence[Skill]) -> list[SkillProblem]:
        """Return a problem for each pattern that matches nothing: most likely it is misspelt."""
        fix = "See `cleats skills list --all` for the names."
        return [
            SkillProblem("warning", "filter", f"the pattern {pattern!r} matches no skill", fix, "")
            for pattern, test in {**self._include, **self._exclude}.items()
            if not any(map(test, skills))
        ]


def _compile_pattern(pattern: str) -> SkillTest:
    pattern = pattern.casefold()
    kind, colon, rest = pattern.partition(":")
    if colon and kind == "root":
        return lambda skill: rest in {skill.source.scope, skill.source.agent} or _matches_any(rest, skill.source.label)
    if colon and kind == "plugin":
        return lambda skill: (
            bool(skill.source.plugin)
            and _matches_any(rest, skill.source.plugin, f"{skill.source.plugin}@{skill.source.marketplace}")
        )
    return lambda skill: _matches_any(pattern, skill.name, skill.full_name)


def _matches_any(pattern: str, *names: str) -> bool:
    return any(fnmatchcase(name.casefold(), pattern) for name in names)


def switch_file(settings: Settings) -> Path:
    return settings.data_dir / "skills" / "disabled.json"


def read_switches(settings: Settings) -> list[str]:
    """Return the full names of disabled skills; an empty list if there is no file.

    Raises:
        ValueError: The file is not a list of names.
    """
    try:
        value = json.loads(switch_file(settings).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError("it is not a list of names")
    return value


def switch_off(settings: Settings, skills: Iterable[Skill]) -> None:
    """Hide skills from every agent that this server serves."""
    _write_switches(settings, {*read_switches(settings), *(skill.full_name for skill in skills)})


def switch_on(settings: Settings, skills: Iterable[Skill]) -> None:
    """Show skills again, however they were disabled.

    Raises:
        OSError: A file cannot be renamed.
    """
    names = set()
    for skill in skills:
        names.add(skill.full_name.casefold())
        if skill.file == DISABLED_FILE_NAME:
            Path(skill.path).rename(Path(skill.folder, SKILL_FILE_NAME))
    _write_switches(settings, {name for name in read_switches(settings) if name.casefold() not in names})


def _write_switches(settings: Settings, names: set[str]) -> None:
    path = switch_file(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, json.dumps(sorted(names), indent=2, ensure_ascii=False) + "\n")
