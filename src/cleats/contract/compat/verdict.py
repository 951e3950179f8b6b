"""What the findings oblige to, and whether the new snapshot does it.

Two policies side by side. The contract's SemVer version has to rise by the highest level found:
MAJOR for what can break a client, MINOR for additions, PATCH for words. And each tool has an
integer of its own, which has to rise when a caller of that tool could notice the change, and which
never falls. Rising further than needed is always fine.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cleats.contract.compat.findings import Finding
from cleats.contract.compat.names import Naming
from cleats.contract.compat.rules import Level

SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?"
)

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of a comparison.

    `declared` is None when one of the snapshots states no contract version. `missing` has one
    sentence for each bump that is owed.
    """

    old_version: str | None
    new_version: str | None
    findings: tuple[Finding, ...]
    required: Level
    declared: Level | None
    missing: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every change is declared."""
        return not self.missing

    def at_least(self, level: Level) -> tuple[Finding, ...]:
        """The findings of a level or above."""
        return tuple(found for found in self.findings if found.rule.level.rank >= level.rank)

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "old": self.old_version,
            "new": self.new_version,
            "required": self.required.value,
            "declared": None if self.declared is None else self.declared.value,
            "missing": list(self.missing),
            "findings": [found.as_json() for found in self.findings],
        }


def verdict(
    old: Mapping[str, Any], new: Mapping[str, Any], naming: Naming, findings: Iterable[Finding]
) -> Report:
    """Weigh the findings against the versions that the two snapshots state."""
    found = tuple(sorted(findings, key=lambda one: one.order))
    levels = (one.rule.level for one in found)
    required = max(levels, key=lambda level: level.rank, default=Level.NONE)
    before, after = old.get("schemaVersion"), new.get("schemaVersion")
    missing = [*_contract(before, after, required, found), *_tools(naming, found)]
    return Report(
        old_version=before,
        new_version=after,
        findings=found,
        required=required,
        declared=declared(before, after),
        missing=tuple(missing),
    )


def declared(old: str | None, new: str | None) -> Level | None:
    """How far the version rose; None when there is nothing to compare.

    A version that fell, or that is no SemVer, declares nothing.
    """
    if old is None or new is None:
        return None
    before, after = _parse(old), _parse(new)
    if before is None or after is None or after <= before:
        return Level.NONE
    if after[0] > before[0]:
        return Level.MAJOR
    return Level.MINOR if after[1] > before[1] else Level.PATCH


def _contract(
    old: str | None, new: str | None, required: Level, found: tuple[Finding, ...]
) -> Iterator[str]:
    if new is None:
        if old is not None:
            yield f"The contract's version is gone; it was {old}."
        elif required is Level.MAJOR:
            yield f"{_cause(found, required)}, and there is no contract version to declare it."
        return
    if _parse(new) is None:
        yield f"The contract's version {new!r} is not a SemVer version."
        return
    before = None if old is None else _parse(old)
    if before is None:  # the first version that can be compared says all there is to say
        return
    rose = declared(old, new) or Level.NONE
    if (_parse(new) or before) < before:
        yield f"The contract's version fell from {old} to {new}."
    elif rose.rank < required.rank:
        needed = ".".join(map(str, _next(before, required)))
        yield f"{_cause(found, required)}: the contract needs version {needed}, not {new}."


def _cause(found: tuple[Finding, ...], level: Level) -> str:
    causes = [one for one in found if one.rule.level is level]
    where = f" of {causes[0].tool}" if causes[0].tool else ""
    more = f" and {len(causes) - 1} more" if len(causes) > 1 else ""
    return f"{causes[0].rule.id}{where}{more} {'are' if more else 'is'} a {level} change"


def _tools(naming: Naming, found: tuple[Finding, ...]) -> Iterator[str]:
    for before, after in naming.kept.items():
        old = naming.old[before].get("schemaVersion")
        new = naming.new[after].get("schemaVersion")
        if old is None:
            continue
        causes = [one.rule.id for one in found if one.rule.integer and _touches(one, after)]
        if new is None:
            yield f"{after}: its schemaVersion is gone; it was {old}."
        elif new < old:
            yield f"{after}: its schemaVersion fell from {old} to {new}."
        elif causes and new == old:
            names = ", ".join(dict.fromkeys(causes))
            yield f"{after}: its schemaVersion has to rise above {old}, because of {names}."


def _touches(found: Finding, tool: str) -> bool:
    return found.tool == tool or tool in found.affects


def _parse(version: str) -> Version | None:
    match = SEMVER.fullmatch(version)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


def _next(version: Version, level: Level) -> Version:
    major, minor, patch = version
    match level:
        case Level.MAJOR:
            return (major + 1, 0, 0)
        case Level.MINOR:
            return (major, minor + 1, 0)
        case _:
            return (major, minor, patch + 1)
