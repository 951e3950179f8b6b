"""Every skill by every name: one immutable value, made anew when something changed.

A short name belongs to the strongest source that has it; a plugin's skills keep their full names
beside it. What is shadowed can still be had by its place: `user:pdf`, `docs@market:pdf`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath

from cleats.toolsets.skills.errors import AmbiguousSkillError, SkillNotFoundError
from cleats.toolsets.skills.filters import Filter
from cleats.toolsets.skills.likeness import alike
from cleats.toolsets.skills.skill import Problem, Skill, Source

SUGGESTIONS = 5
LIKENESS = 60.0
"""Per cent of two names that must agree; two slips in a name of nine letters still do."""


@dataclass(frozen=True, slots=True)
class Shadowed:
    """A skill that another one hides, and which."""

    skill: Skill
    by: Skill


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """What there is at one moment."""

    skills: Sequence[Skill] = ()
    """Those that are on and wanted, the strongest source first, by name within it."""

    shadowed: Sequence[Shadowed] = ()
    off: Sequence[Skill] = ()
    problems: Sequence[Problem] = ()
    sources: Sequence[Source] = ()
    """The places that were there."""

    _full: Mapping[str, Skill] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        full = {skill.full_name.casefold(): skill for skill in self.for_models}
        object.__setattr__(self, "_full", full)

    @cached_property
    def for_models(self) -> Sequence[Skill]:
        """The skills that a model may find by itself."""
        if all(skill.for_models for skill in self.skills):
            return self.skills
        return [skill for skill in self.skills if skill.for_models]

    @cached_property
    def for_people(self) -> Mapping[str, Skill]:
        """The skills that a person may ask for, by full name, sorted."""
        named = {skill.full_name: skill for skill in self.skills if skill.for_people}
        return dict(sorted(named.items()))

    @cached_property
    def _short(self) -> Mapping[str, list[Skill]]:
        short: dict[str, list[Skill]] = {}
        for skill in self.for_models:
            short.setdefault(skill.name.casefold(), []).append(skill)
        return short

    def _broken(self, key: str) -> Problem | None:
        """What keeps the file in a folder of this name from being a skill."""
        called = key.rpartition(":")[2]
        for problem in self.problems:
            folder = PurePath(problem.path).parent.name
            if problem.severity == "error" and folder.casefold() == called:
                return problem
        return None

    def find(self, name: str) -> Skill:
        """Find a skill by its full name, or by a short name only it has. Case is ignored.

        Raises:
            AmbiguousSkillError: the short name fits skills of several plugins.
            SkillNotFoundError: nothing fits; the error carries the nearest names.
        """
        key = name.strip().casefold()
        if (skill := self._full.get(key)) is not None:
            return skill
        fitting = self._short.get(key, ())
        if len(fitting) > 1:
            raise AmbiguousSkillError(name, [skill.full_name for skill in fitting])
        if fitting:
            return fitting[0]
        if (placed := self._placed(key)) is not None:
            return placed
        raise SkillNotFoundError(name, self.near(key), self._broken(key))

    def near(self, name: str) -> list[str]:
        """The full names that look most like this one: what begins or goes on so, then typos.

        A skill that is called otherwise than its folder comes first when asked for by that.
        """
        key = name.strip().casefold()
        if not key:
            return []
        there = [s.full_name for s in self.for_models if s.folder.casefold().endswith(f"/{key}")]
        inside = [full for full in self._full if key in full] if len(key) > 1 else []
        inside.sort(key=lambda full: (full.rpartition(":")[2].find(key) != 0, len(full), full))
        near = dict.fromkeys([*there, *(self._full[full].full_name for full in inside)])
        choices = [*self._full, *self._short]
        for choice in alike(key, choices, least=LIKENESS, limit=2 * SUGGESTIONS):
            skills = [self._full[choice]] if choice in self._full else self._short[choice]
            near |= dict.fromkeys(skill.full_name for skill in skills)
        return list(near)[:SUGGESTIONS]

    def _placed(self, key: str) -> Skill | None:
        place, colon, name = key.rpartition(":")
        if not colon:
            return None
        everywhere = [*self.for_models, *(s.skill for s in self.shadowed if s.skill.for_models)]
        for skill in everywhere:
            if skill.name.casefold() == name and place in _places(skill.source):
                return skill
        return None


def _places(source: Source) -> set[str]:
    places = {source.scope, source.label, source.agent}
    if source.plugin:
        places |= {source.plugin, f"{source.plugin}@{source.marketplace}"}
    return {place.casefold() for place in places}


def assemble(
    found: Iterable[Iterable[Skill]],
    *,
    wanted: Filter,
    disabled: Iterable[str] = (),
    problems: Iterable[Problem] = (),
    sources: Sequence[Source] = (),
) -> Catalogue:
    """Put together what the sources have, the strongest first."""
    switched_off = {name.casefold() for name in disabled}
    seen: set[tuple[int, int]] = set()
    everything: list[Skill] = []
    for skills in found:
        for skill in sorted(skills, key=lambda skill: (skill.full_name.casefold(), skill.place)):
            if skill.identity not in seen:  # another way to the same folder
                seen.add(skill.identity)
                everything.append(skill)
    complaints = [*problems, *(problem for skill in everything for problem in skill.problems)]
    complaints += wanted.idle(everything)
    by_name: dict[str, Skill] = {}
    shadowed: list[Shadowed] = []
    off: list[Skill] = []
    for skill in everything:
        if wanted and not wanted.wants(skill):
            continue
        key = skill.full_name.casefold()
        if skill.off or key in switched_off:
            off.append(skill)
        elif (stronger := by_name.setdefault(key, skill)) is not skill:
            shadowed.append(Shadowed(skill, stronger))
            complaints.append(_shadow(skill, stronger))
    return Catalogue(
        skills=tuple(by_name.values()),
        shadowed=shadowed,
        off=off,
        problems=complaints,
        sources=sources,
    )


def _shadow(skill: Skill, stronger: Skill) -> Problem:
    place = f"{skill.source.plugin}@{skill.source.marketplace}"
    place = place if skill.source.plugin else skill.source.scope
    return Problem(
        "info",
        "shadowed",
        f"{skill.full_name!r} is also in {stronger.folder}, which comes first",
        f"Load this one as {place}:{skill.name}, or rename one of them.",
        skill.path,
    )
