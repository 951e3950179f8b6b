"""What was found and what is wrong, in words for an agent that misses a skill."""

from collections import Counter
from collections.abc import Iterable, Iterator

from cleats.toolsets.skills.catalogue import Catalogue
from cleats.toolsets.skills.skill import Problem, Skill, speakable

MOST = 100
"""Problems in one answer."""

RANK = {"error": 0, "warning": 1, "info": 2}


def report(catalogue: Catalogue, more: Iterable[Problem] = (), name: str = "") -> str:
    """The whole report, or what concerns one name."""
    return "\n".join(_lines(catalogue, [*catalogue.problems, *more], name.casefold()))


def _lines(catalogue: Catalogue, problems: list[Problem], name: str) -> Iterator[str]:
    if name:
        known = [*catalogue.skills, *(each.skill for each in catalogue.shadowed), *catalogue.off]
        fitting = [skill for skill in known if name in skill.full_name.casefold()]
        yield from (_skill(catalogue, skill) for skill in fitting)
        paths = {skill.path for skill in fitting}
        problems = [p for p in problems if p.path in paths or name in p.path.casefold()]
        if not fitting and not problems:
            yield f"No skill and no problem has to do with {name!r}."
            return
    else:
        counts = Counter(skill.source for skill in catalogue.skills)
        yield f"{len(catalogue.skills)} skills in {len(catalogue.sources)} folders:"
        for source in catalogue.sources:
            yield f"- {speakable(source.path)} ({source.label}): {counts[source]}"
        if catalogue.off:
            yield "Switched off: " + ", ".join(skill.full_name for skill in catalogue.off)
    yield ""
    yield f"{len(problems)} problems" + (":" if problems else ".")
    for problem in sorted(problems, key=lambda p: (RANK[p.severity], p.path))[:MOST]:
        yield f"- {problem.severity} [{problem.code}] {problem.path}: {problem.message}."
        yield f"  {problem.fix}"
    if len(problems) > MOST:
        yield f"... and {len(problems) - MOST} more."


def _skill(catalogue: Catalogue, skill: Skill) -> str:
    state = "can be loaded"
    if any(skill is each.skill for each in catalogue.shadowed):
        state = "is hidden by another"
    elif any(skill is each for each in catalogue.off):
        state = "is switched off"
    elif not skill.for_models:
        state = "is only for people to ask for (disable-model-invocation)"
    return f"- {skill.full_name} ({skill.path}) {state}"
