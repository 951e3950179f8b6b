"""The version bump that findings require, and if the new snapshot declares it.

There are two policies. The contract's SemVer version has to rise by the highest level found: MAJOR
for what can break a client, MINOR for additions, PATCH for words. And each tool has its own
integer, which has to rise when a caller of that tool could notice the change, and which never
falls. Rising further than needed is always allowed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cleats.contract.compat.findings import ContractFinding
from cleats.contract.compat.renames import ToolMatching
from cleats.contract.compat.rules import BumpLevel
from cleats.contract.versions import RELEASE_VERSION_PATTERN

SEMVER_PATTERN: Final = re.compile(RELEASE_VERSION_PATTERN.pattern + r"(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")

VersionTuple = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractReport:
    """The result of a comparison.

    `declared` is None when one of the snapshots states no contract version. `missing` has one
    sentence for each required bump that was not made.
    """

    old_version: str | None
    new_version: str | None
    findings: tuple[ContractFinding, ...]
    required: BumpLevel
    declared: BumpLevel | None
    missing: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if every change is declared."""
        return not self.missing

    def filter_by_level(self, level: BumpLevel) -> tuple[ContractFinding, ...]:
        """Return the findings of a level or above."""
        return tuple(finding for finding in self.findings if finding.rule.level.rank >= level.rank)

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "old": self.old_version,
            "new": self.new_version,
            "required": self.required.value,
            "declared": None if self.declared is None else self.declared.value,
            "missing": list(self.missing),
            "findings": [finding.as_json() for finding in self.findings],
        }


def build_report(
    old: Mapping[str, Any], new: Mapping[str, Any], matching: ToolMatching, findings: Iterable[ContractFinding]
) -> ContractReport:
    """Compare the findings with the versions that the two snapshots state."""
    sorted_findings = tuple(sorted(findings, key=lambda finding: finding.sort_key))
    levels = (finding.rule.level for finding in sorted_findings)
    required = max(levels, key=lambda level: level.rank, default=BumpLevel.NONE)
    before, after = get_stated_version(old), get_stated_version(new)
    missing = [
        *_check_contract_version(before, after, required, sorted_findings),
        *_check_tool_versions(matching, sorted_findings),
    ]
    return ContractReport(
        old_version=before,
        new_version=after,
        findings=sorted_findings,
        required=required,
        declared=get_declared_level(before, after),
        missing=tuple(missing),
    )


def get_stated_version(snapshot: Mapping[str, Any]) -> str | None:
    """Return the version of the contract, or else that of the server; None if it states no SemVer version."""
    if snapshot.get("schemaVersion") is not None:
        return str(snapshot["schemaVersion"])
    version = (snapshot.get("server") or {}).get("version")
    return version if isinstance(version, str) and _parse_version(version) is not None else None


def get_declared_level(old: str | None, new: str | None) -> BumpLevel | None:
    """Return how far the version rose, or None if there is nothing to compare.

    A version that fell, or that is not SemVer, declares nothing. Before 1.0.0 a minor bump declares
    a breaking change; between pre-releases, and from one to its release, everything may change.
    """
    if old is None or new is None:
        return None
    before, after = _parse_version(old), _parse_version(new)
    if before is None or after is None or after < before:
        return BumpLevel.NONE
    if after == before:
        return BumpLevel.MAJOR if _is_prerelease(old) and new != old else BumpLevel.NONE
    if after[0] > before[0] or (before[0] == 0 and after[1] > before[1]):
        return BumpLevel.MAJOR
    return BumpLevel.MINOR if after[1] > before[1] or before[0] == 0 else BumpLevel.PATCH


def _is_prerelease(version: str) -> bool:
    return "-" in version.partition("+")[0]


def _check_contract_version(
    old: str | None, new: str | None, required: BumpLevel, findings: tuple[ContractFinding, ...]
) -> Iterator[str]:
    if new is None:
        if old is not None:
            yield f"The contract's version is gone; it was {old}."
        elif required is BumpLevel.MAJOR:
            yield f"{_describe_cause(findings, required)}, and the server states no version that declares it."
        return
    if _parse_version(new) is None:
        yield f"The contract's version {new!r} is not a SemVer version."
        return
    before = None if old is None else _parse_version(old)
    if before is None:  # the first version that can be compared says all there is to say
        return
    declared_level = get_declared_level(old, new) or BumpLevel.NONE
    if (_parse_version(new) or before) < before:
        yield f"The contract's version fell from {old} to {new}."
    elif declared_level.rank < required.rank:
        needed_version = ".".join(map(str, _bump_version(before, required)))
        yield f"{_describe_cause(findings, required)}: the contract needs version {needed_version}, not {new}."


def _describe_cause(findings: tuple[ContractFinding, ...], level: BumpLevel) -> str:
    causes = [finding for finding in findings if finding.rule.level is level]
    location = f" of {causes[0].tool}" if causes[0].tool else ""
    remainder = f" and {len(causes) - 1} more" if len(causes) > 1 else ""
    return f"{causes[0].rule.id}{location}{remainder} {'are' if remainder else 'is'} a {level} change"


def _check_tool_versions(matching: ToolMatching, findings: tuple[ContractFinding, ...]) -> Iterator[str]:
    for before, after in matching.new_names.items():
        old = matching.old[before].get("schemaVersion")
        new = matching.new[after].get("schemaVersion")
        if old is None:
            continue
        causes = [finding.rule.id for finding in findings if finding.rule.integer and _is_affected(finding, after)]
        if new is None:
            yield f"{after}: its schemaVersion is gone; it was {old}."
        elif new < old:
            yield f"{after}: its schemaVersion fell from {old} to {new}."
        elif causes and new == old:
            names = ", ".join(dict.fromkeys(causes))
            yield f"{after}: its schemaVersion has to rise above {old}, because of {names}."


def _is_affected(finding: ContractFinding, tool: str) -> bool:
    return finding.tool == tool or tool in finding.affects


def _parse_version(version: str) -> VersionTuple | None:
    match = SEMVER_PATTERN.fullmatch(version)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


def _bump_version(version: VersionTuple, level: BumpLevel) -> VersionTuple:
    major, minor, patch = version
    if major == 0 and level is not BumpLevel.PATCH:  # 0.x states its breaking changes one place lower
        return (0, minor + 1, 0) if level is BumpLevel.MAJOR else (0, minor, patch + 1)
    match level:
        case BumpLevel.MAJOR:
            return (major + 1, 0, 0)
        case BumpLevel.MINOR:
            return (major, minor + 1, 0)
        case _:
            return (major, minor, patch + 1)
