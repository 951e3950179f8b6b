"""What a team makes of findings: rule sets, levels of rules, and exceptions that expire."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final

from cleats.contract.compat.findings import ContractFinding
from cleats.contract.compat.rules import BumpLevel

STRICT_LEVELS: Final = {"INPUT_DEFAULT_STATED": BumpLevel.MAJOR}
"""The levels of rules that differ in the strict rule set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleException:
    """Findings that a team has agreed to, with the reason and the last day."""

    rule: str
    reason: str
    server: str | None = None
    tool: str | None = None
    pointer: str | None = None
    """The place; everything below it counts too."""
    expires: date | None = None

    def covers(self, finding: ContractFinding, server: str | None, today: date) -> bool:
        is_place = self.pointer is None or f"{finding.pointer}/".startswith(f"{self.pointer}/")
        return (
            self.rule == finding.rule.id
            and is_place
            and self.tool in (None, finding.tool)
            and self.server in (None, server)
            and (self.expires is None or today <= self.expires)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractPolicy:
    """The levels that rules have for a team, and the exceptions."""

    strict: bool = False
    levels: Mapping[str, BumpLevel] = field(default_factory=dict)
    """The level of a rule by its id; with NONE, its findings are left out."""
    exceptions: tuple[RuleException, ...] = ()
    server: str | None = None
    today: date = date.min

    def apply(self, findings: Iterable[ContractFinding]) -> Iterator[ContractFinding]:
        """Yield the findings that count, each with the level that its rule has here."""
        levels = {**(STRICT_LEVELS if self.strict else {}), **self.levels}
        for finding in findings:
            level = levels.get(finding.rule.id, finding.rule.level)
            is_left_out = level is BumpLevel.NONE and finding.rule.id in levels
            if is_left_out or any(item.covers(finding, self.server, self.today) for item in self.exceptions):
                continue
            yield replace(finding, rule=replace(finding.rule, level=level))


DEFAULT_POLICY: Final = ContractPolicy()
