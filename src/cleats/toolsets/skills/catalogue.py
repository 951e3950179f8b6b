"""The catalogue: every skill by every name, as one immutable value that is rebuilt on changes.

A short name belongs to the strongest source that has it; a plugin's skills also keep their full
names. A shadowed skill is still available by its place: `user:pdf`, `docs@market:pdf`.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.skills.selection import SkillFilter
from cleats.toolsets.skills.skill import Skill, SkillProblem, SkillSource

MAX_SUGGESTIONS = 5
MIN_NAME_SIMILARITY = 60.0
"""The minimum similarity of two names in per cent; two typos in a name of nine letters are within it."""


class SkillNotFoundError(ToolError):
    """Raised when no skill has the name; it carries the nearest names.

    A file that would be the skill, if it were valid, is named with its problem.
    """

    def __init__(self, name: str, suggestions: Sequence[str], broken: SkillProblem | None = None) -> None:
        names = ", ".join(suggestions)
        hint = f"Did you mean: {names}?" if names else "The description of this tool lists the names."
        reason = "."
        if broken is not None:
            reason = f". {broken.path} cannot be used, because {broken.message}."
            hint = f"{broken.fix} `cleats skills validate` lists all problems."
        super().__init__(
            ErrorCode.NOT_FOUND,
            f"Skill not found: {name!r}{reason}",
            hint=hint,
            details={"suggestions": list(suggestions)},
        )


@dataclass(frozen=True, slots=True)
class ShadowedSkill:
    """A skill that a stronger one hides."""

    skill: Skill
    stronger: Skill


@dataclass(frozen=True, kw_only=True)
class SkillCatalogue:
    """All skills at one moment."""

    skills: Sequence[Skill] = ()
    """The enabled and included skills, the strongest source first, by name within it."""

    shadowed: Sequence[ShadowedSkill] = ()
    disabled: Sequence[Skill] = ()
    problems: Sequence[SkillProblem] = ()
    sources: Sequence[SkillSource] = ()
    """The source folders that exist."""

    @cached_property
    def _full(self) -> Mapping[str, Skill]:
        return {skill.full_name.casefold(): skill for skill in self.for_models}

    @cached_property
    def for_models(self) -> Sequence[Skill]:
        """The skills that a model may find by itself."""
        return [skill for skill in self.skills if skill.for_models]

    @cached_property
    def for_people(self) -> Mapping[str, Skill]:
        """The skills that a person may ask for, by full name, sorted."""
        skills_by_name = {skill.full_name: skill for skill in self.skills if skill.for_people}
        return dict(sorted(skills_by_name.items()))

    @cached_property
    def published_skills(self) -> Mapping[str, Skill]:
        """The skills that are listed as resources, by URI, sorted."""
        publishable_skills = (skill for skill in self.skills if skill.publishable)
        return {skill.uri: skill for skill in sorted(publishable_skills, key=lambda skill: skill.uri)}

    @cached_property
    def published_skills_by_root(self) -> Mapping[str, Skill]:
        """Every skill that can be read as a resource, shadowed ones too, by its root."""
        hidden = [shadowed.skill for shadowed in self.shadowed if shadowed.skill.publishable]
        return {skill.root_uri: skill for skill in [*hidden, *self.published_skills.values()]}

    @cached_property
    def _by_short_name(self) -> Mapping[str, list[Skill]]:
        skills_by_name: dict[str, list[Skill]] = {}
        for skill in self.for_models:
            skills_by_name.setdefault(skill.name.casefold(), []).append(skill)
        return skills_by_name

    def _find_broken(self, key: str) -> SkillProblem | None:
        """Return the error that prevents the file in a folder of this name from being a skill."""
        folder_name = key.rpartition(":")[2]
        errors = (problem for problem in self.problems if problem.severity == "error")
        return next((item for item in errors if PurePath(item.path).parent.name.casefold() == folder_name), None)

    def find(self, name: str) -> Skill:
        """Find a skill by its full name, or by an unambiguous short name. Case is ignored.

        Raises:
            ToolError: The short name matches skills of several plugins; only a full name is unique.
            SkillNotFoundError: Nothing matches; the error carries the nearest names.
        """
        key = name.strip().casefold()
        if (skill := self._full.get(key)) is not None:
            return skill
        matches = self._by_short_name.get(key, ())
        if len(matches) > 1:
            names = [skill.full_name for skill in matches]
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{name!r} is ambiguous, {len(names)} skills have it: {', '.join(names)}.",
                hint=f"Use a full name, such as {names[0]!r}.",
                details={"matches": names},
            )
        if matches:
            return matches[0]
        if (skill_by_place := self._find_by_place(key)) is not None:
            return skill_by_place
        raise SkillNotFoundError(name, self.suggest_names(key), self._find_broken(key))

    def suggest_names(self, name: str) -> list[str]:
        """Return the most similar full names: those that contain the name first, then typos.

        A skill whose name differs from its folder's comes first when asked for by the latter.
        """
        key = name.strip().casefold()
        if not key:
            return []
        same_folder = [
            candidate.full_name for candidate in self.for_models if candidate.folder.casefold().endswith(f"/{key}")
        ]
        containing = [full for full in self._full if key in full] if len(key) > 1 else []
        containing.sort(key=lambda full: (full.rpartition(":")[2].find(key) != 0, len(full), full))
        suggestions = dict.fromkeys([*same_folder, *(self._full[full].full_name for full in containing)])
        choices = [*self._full, *self._by_short_name]
        for choice in find_similar(key, choices, min_percent=MIN_NAME_SIMILARITY, limit=2 * MAX_SUGGESTIONS):
            skills = [self._full[choice]] if choice in self._full else self._by_short_name[choice]
            suggestions |= dict.fromkeys(skill.full_name for skill in skills)
        return list(suggestions)[:MAX_SUGGESTIONS]

    def _find_by_place(self, key: str) -> Skill | None:
        place, colon, name = key.rpartition(":")
        if not colon:
            return None
        candidates = [*self.for_models, *(shadowed.skill for shadowed in self.shadowed if shadowed.skill.for_models)]
        same_name = (skill for skill in candidates if skill.name.casefold() == name)
        return next((skill for skill in same_name if place in _list_places(skill.source)), None)


def _list_places(source: SkillSource) -> set[str]:
    places = {source.scope, source.label, source.agent}
    if source.plugin:
        places |= {source.plugin, f"{source.plugin}@{source.marketplace}"}
    return {place.casefold() for place in places}


def assemble_catalogue(
    skills_by_source: Iterable[Iterable[Skill]],
    *,
    skill_filter: SkillFilter,
    disabled: Iterable[str] = (),
    problems: Iterable[SkillProblem] = (),
    sources: Sequence[SkillSource] = (),
) -> SkillCatalogue:
    """Combine the skills of all sources into a catalogue, the strongest source first."""
    switched_off = {name.casefold() for name in disabled}
    seen_identities: set[tuple[int, int]] = set()
    unique_skills: list[Skill] = []
    for skills in skills_by_source:
        for skill in sorted(skills, key=lambda skill: (skill.full_name.casefold(), skill.uri_path)):
            if skill.identity not in seen_identities:  # otherwise another path to the same folder
                seen_identities.add(skill.identity)
                unique_skills.append(skill)
    all_problems = [*problems, *(problem for skill in unique_skills for problem in skill.problems)]
    all_problems += skill_filter.report_unused(unique_skills)
    by_name: dict[str, Skill] = {}
    shadowed: list[ShadowedSkill] = []
    disabled_skills: list[Skill] = []
    for skill in unique_skills:
        if skill_filter and not skill_filter.accepts(skill):
            continue
        key = skill.full_name.casefold()
        if skill.disabled or key in switched_off:
            disabled_skills.append(skill)
        elif (stronger := by_name.setdefault(key, skill)) is not skill:
            shadowed.append(ShadowedSkill(skill, stronger))
            source = skill.source
            place = f"{source.plugin}@{source.marketplace}" if source.plugin else source.scope
            message = f"{skill.full_name!r} is hidden by the skill of the same name in {stronger.folder}"
            fix = f"Load this one as {place}:{skill.name}, or rename one of them."
            all_problems.append(SkillProblem("info", "shadowed", message, fix, skill.path))
    return SkillCatalogue(
        skills=tuple(by_name.values()),
        shadowed=shadowed,
        disabled=disabled_skills,
        problems=all_problems,
        sources=sources,
    )


_import_lock = threading.Lock()
"""Serializes the import: two threads that import the library at once can see it half initialized."""


def find_similar(word: str, words: Sequence[str], *, min_percent: float, limit: int) -> list[str]:
    """Return the words with at least this similarity in per cent, the most similar first."""
    process, ratio = load_matcher()
    matches = process.extract(word, words, scorer=ratio, score_cutoff=min_percent, limit=limit)
    return [candidate for candidate, _score, _index in matches]


def load_matcher() -> tuple[Any, Any]:
    """Return the functions of the library, which is imported when the first word is wrong."""
    with _import_lock:
        from rapidfuzz import fuzz, process  # noqa: PLC0415 - only for a word that is wrong

        return process, fuzz.ratio
