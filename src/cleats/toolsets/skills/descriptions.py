"""The description of the `skill` tool: the list of skills, within a budget of characters.

Every agent pays for it in every conversation. If the list is too long, descriptions are shortened first, all to the
same length; then only names are listed; only if they do not fit either, the weakest skills are omitted, with a count.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from cleats.toolsets.skills.catalogue import SkillCatalogue
from cleats.toolsets.skills.skill import Skill, SkillProblem, make_encodable

LIST_HEADER = "Load a skill by name to get specialized instructions.\n\nAvailable skills:\n"
EMPTY_DESCRIPTION = LIST_HEADER.rpartition("Available")[0] + "No skills are installed."
MIN_DESCRIPTION_CHARS = 12
"""The length of a description below which it says nothing; then names are listed without descriptions."""


def describe_catalogue(catalogue: SkillCatalogue, budget: int, *, has_search: bool = False) -> str:
    """Return the description for this catalogue; never over the budget, unless one line is.

    `has_search` says that skill_search is served, which can find omitted skills.
    """
    skills = catalogue.for_models
    if not skills:
        return EMPTY_DESCRIPTION
    available_chars = budget - len(LIST_HEADER) + 1  # the last line has no end
    frames = sum(len(skill.full_name) + len("- : \n") for skill in skills)
    lengths = [len(skill.description) for skill in skills]
    max_length = _fit_length(lengths, available_chars - frames)
    if max_length >= min(MIN_DESCRIPTION_CHARS, max(lengths)):
        lines = [_format_line(skill, max_length) for skill in skills]
    else:
        omitted_text = "find them with skill_search" if has_search else "ask for one by a part of its name"
        lines = _list_names(skills, available_chars, omitted_text)
    return LIST_HEADER + "\n".join(lines)


def _fit_length(lengths: Sequence[int], available_chars: int) -> int:
    """Return the greatest length to which all can be cut so that they fit."""
    low, high = 0, max(lengths)
    while low < high:
        middle = (low + high + 1) // 2
        fits = sum(min(length, middle) for length in lengths) <= available_chars
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _list_names(skills: Sequence[Skill], available_chars: int, omitted_text: str) -> list[str]:
    """Return the names without descriptions: all, or as many as fit and a hint how to find the others."""
    lines = [f"- {skill.full_name}" for skill in skills]
    if sum(len(line) + 1 for line in lines) <= available_chars:
        return lines
    available_chars -= len(f"... and {len(lines)} more: {omitted_text}.") + 1
    ends = accumulate(len(line) + 1 for line in lines)
    count = max(1, sum(end <= available_chars for end in ends))
    return [*lines[:count], f"... and {len(lines) - count} more: {omitted_text}."] if count < len(lines) else lines


def _format_line(skill: Skill, max_length: int) -> str:
    text = skill.description
    if len(text) > max_length:
        text = text[: max_length - 1].rstrip() + "…"
    return f"- {skill.full_name}: {text}"


MAX_SHOWN_PROBLEMS = 100
"""The maximum number of problems in one answer."""

SEVERITY_RANKS = {"error": 0, "warning": 1, "info": 2}


def render_report(catalogue: SkillCatalogue, further_problems: Iterable[SkillProblem] = (), name: str = "") -> str:
    """Render the whole report, or only the part that concerns one name."""
    return "\n".join(_report_lines(catalogue, [*catalogue.problems, *further_problems], name.casefold()))


def _report_lines(catalogue: SkillCatalogue, problems: list[SkillProblem], name: str) -> Iterator[str]:
    if name:
        all_skills = [*catalogue.skills, *(shadowed.skill for shadowed in catalogue.shadowed), *catalogue.disabled]
        matching = [skill for skill in all_skills if name in skill.full_name.casefold()]
        yield from (_describe_state(catalogue, skill) for skill in matching)
        paths = {skill.path for skill in matching}
        problems = [candidate for candidate in problems if candidate.path in paths or name in candidate.path.casefold()]
        if not matching and not problems:
            yield f"No skill and no problem matches {name!r}."
            return
    else:
        counts = Counter(skill.source for skill in catalogue.skills)
        yield f"{len(catalogue.skills)} skills in {len(catalogue.sources)} folders:"
        for source in catalogue.sources:
            yield f"- {make_encodable(source.path)} ({source.label}): {counts[source]}"
        if catalogue.disabled:
            yield "Switched off: " + ", ".join(skill.full_name for skill in catalogue.disabled)
    yield ""
    yield f"{len(problems)} problems" + (":" if problems else ".")
    for problem in sorted(problems, key=lambda candidate: (SEVERITY_RANKS[candidate.severity], candidate.path))[
        :MAX_SHOWN_PROBLEMS
    ]:
        yield f"- {problem.severity} [{problem.code}] {problem.path}: {problem.message}."
        yield f"  {problem.fix}"
    if len(problems) > MAX_SHOWN_PROBLEMS:
        yield f"... and {len(problems) - MAX_SHOWN_PROBLEMS} more."


def _describe_state(catalogue: SkillCatalogue, skill: Skill) -> str:
    state = "can be loaded"
    if any(skill is candidate.skill for candidate in catalogue.shadowed):
        state = "is hidden by another"
    elif any(skill is candidate for candidate in catalogue.disabled):
        state = "is switched off"
    elif not skill.for_models:
        state = "can be loaded only by people (disable-model-invocation)"
    return f"- {skill.full_name} ({skill.path}) {state}"
