"""Which of the skills that were found are wanted.

A pattern is a name or a glob, matched against short and full names; `root:PLACE` is everything
from a place (`project`, `user`, `claude`, `user/claude`, …), `plugin:NAME` everything from a
plugin. Case is ignored.
"""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

from cleats.toolsets.skills.skill import Problem, Skill

Test: TypeAlias = Callable[[Skill], bool]


class Filter:
    """Include, then exclude. Nothing to include means everything."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str]) -> None:
        self._include = {pattern: _test(pattern) for pattern in include}
        self._exclude = {pattern: _test(pattern) for pattern in exclude}

    def __bool__(self) -> bool:
        return bool(self._include or self._exclude)

    def wants(self, skill: Skill) -> bool:
        """Whether a skill passes."""
        if self._include and not any(test(skill) for test in self._include.values()):
            return False
        return not any(test(skill) for test in self._exclude.values())

    def idle(self, skills: Sequence[Skill]) -> list[Problem]:
        """A word about each pattern that fits nothing: most likely it is misspelt."""
        return [
            Problem(
                "warning",
                "filter",
                f"the pattern {pattern!r} fits no skill",
                "See `cleats skills list --all` for the names.",
                "",
            )
            for pattern, test in {**self._include, **self._exclude}.items()
            if not any(map(test, skills))
        ]


def _test(pattern: str) -> Test:
    pattern = pattern.casefold()
    kind, colon, rest = pattern.partition(":")
    if colon and kind == "root":
        return lambda skill: _from_place(skill, rest)
    if colon and kind == "plugin":
        return lambda skill: _from_plugin(skill, rest)
    return lambda skill: _named(skill, pattern)


def _from_place(skill: Skill, place: str) -> bool:
    source = skill.source
    return place in {source.scope, source.agent} or fnmatchcase(source.label.casefold(), place)


def _from_plugin(skill: Skill, plugin: str) -> bool:
    source = skill.source
    full = f"{source.plugin}@{source.marketplace}"
    return bool(source.plugin) and any(
        fnmatchcase(name.casefold(), plugin) for name in (source.plugin, full)
    )


def _named(skill: Skill, pattern: str) -> bool:
    return any(fnmatchcase(name.casefold(), pattern) for name in (skill.name, skill.full_name))
