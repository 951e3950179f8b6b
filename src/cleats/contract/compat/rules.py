"""The table of every kind of contract change, from `rules.toml`.

A rule states how far a change raises the contract's SemVer version (`level`), if the tool's own integer has to rise
(`integer`), if models read what changed (`warns`) and if it belongs to the security class (`security`). `purpose` says
what changed and whom it touches, `fix` what to do; `before` and `after` show the change in the entry of a tool or, by
`scope`, in a whole snapshot. Findings, reports, `cleats contract explain`, the pages and the SARIF metadata are read
from this table. The id of a rule is stable: people put it into `--ignore` and into their commit
messages.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

import msgspec


class BumpLevel(StrEnum):
    """The part of a SemVer version that a change has to raise."""

    NONE = "none"
    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"

    @property
    def rank(self) -> int:
        """The rank for comparisons: as strings, `major` would come before `minor`."""
        return _LEVEL_RANKS[self]


_LEVEL_RANKS: Final = {level: rank for rank, level in enumerate(BumpLevel)}


class FindingSeverity(StrEnum):
    """The severity of a finding. A warning changes no call, but models read the changed text."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class ContractRule:
    """One kind of change, and the version bump it requires."""

    id: str
    level: BumpLevel
    purpose: str
    fix: str
    before: str
    after: str
    scope: Literal["tool", "contract"] = "tool"
    integer: bool = False
    warns: bool = False
    security: bool = False

    @property
    def severity(self) -> FindingSeverity:
        if self.level is BumpLevel.MAJOR:
            return FindingSeverity.ERROR
        return FindingSeverity.WARNING if self.warns else FindingSeverity.INFO


RULES: Final[Mapping[str, ContractRule]] = {
    name: msgspec.convert({"id": name, **row}, ContractRule)
    for name, row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
"""The rules by id, in the order in which reports show them."""

RULE_ORDER: Final[Mapping[str, int]] = {name: place for place, name in enumerate(RULES)}
