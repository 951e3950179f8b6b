"""The description of the `skill` tool: the list of skills, within a budget of characters.

Every agent pays for it in every conversation. When the list is too long, descriptions are
shortened first, all to the same length; then the weakest skills are left out, with a count and
the way to find them.
"""

from collections.abc import Iterator, Sequence

from cleats.toolsets.skills.catalogue import Catalogue
from cleats.toolsets.skills.skill import Skill

HEAD = "Load a skill by name to get specialized instructions.\n\nAvailable skills:\n"
NONE = HEAD.rpartition("Available")[0] + "No skills are installed."
SHORTEST = 40
"""Characters of a description below which it no longer says what a skill is for."""


def describe(catalogue: Catalogue, budget: int) -> str:
    """The text for this catalogue; never longer than the budget, unless one line is."""
    skills = catalogue.for_models
    if not skills:
        return NONE
    room = budget - len(HEAD) + 1  # the last line has no end
    frames = sum(len(skill.full_name) + len("- : \n") for skill in skills)
    lengths = [len(skill.description) for skill in skills]
    if frames + sum(lengths) <= room:
        most = max(lengths)
    elif frames + sum(min(length, SHORTEST) for length in lengths) <= room:
        most = _longest(lengths, room - frames)
    else:
        return HEAD + "\n".join(_some(skills, room))
    return HEAD + "\n".join(_line(skill, most) for skill in skills)


def _longest(lengths: Sequence[int], room: int) -> int:
    """The greatest length to which all can be cut, so that they fit."""
    low, high = SHORTEST, max(lengths)
    while low < high:
        middle = (low + high + 1) // 2
        fits = sum(min(length, middle) for length in lengths) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _some(skills: Sequence[Skill], room: int) -> Iterator[str]:
    """As many as there is room for, and how to find the others."""
    room -= len(_more(len(skills))) + 1
    for number, skill in enumerate(skills):
        line = _line(skill, SHORTEST)
        room -= len(line) + 1
        if room < 0 and number:
            yield _more(len(skills) - number)
            return
        yield line


def _more(count: int) -> str:
    return f"... and {count} more: find them with skill_search."


def _line(skill: Skill, most: int) -> str:
    text = skill.description
    if len(text) > most:
        text = text[: most - 1].rstrip() + "…"
    return f"- {skill.full_name}: {text}"
