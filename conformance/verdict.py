"""What one scenario's checks amount to, given what is excluded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformance.suite import Scenario


@dataclass(slots=True)
class Verdict:
    """A cell of the table, and why it reads as it does."""

    scenario: str
    scored: bool
    word: str = "pass"
    reasons: list[int] = field(default_factory=list)
    """The numbers of the exclusions that had a part in it."""

    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        marks = "".join(f" [{number}]" for number in self.reasons)
        return f"{self.word}{marks}"


def judge(scenarios: Sequence[Scenario], excluded: Mapping[str, int]) -> list[Verdict]:
    """A verdict for every scenario of a run."""
    return [_verdict(scenario, excluded) for scenario in scenarios]


def unknown(scenarios: Sequence[Scenario], excluded: Mapping[str, int]) -> list[str]:
    """Exclusions that name a scenario which is not part of the run."""
    names = {scenario.name for scenario in scenarios}
    return [
        f"{what} is excluded, but there is no such scenario"
        for what in excluded
        if what.partition(":")[0] not in names
    ]


def _verdict(scenario: Scenario, excluded: Mapping[str, int]) -> Verdict:
    verdict = Verdict(scenario.name, scenario.scored)
    if (whole := excluded.get(scenario.name)) is not None:
        verdict.word, verdict.reasons = "excluded", [whole]
        if not _shortcomings(scenario, {}):
            verdict.problems = ["passes, so it must not be excluded"]
    else:
        prefix = f"{scenario.name}:"
        parts = {
            what.removeprefix(prefix): number
            for what, number in excluded.items()
            if what.startswith(prefix)
        }
        failed = {check.id for check in scenario.checks if check.failed}
        verdict.reasons = sorted({number for check, number in parts.items() if check in failed})
        verdict.problems = [
            *_shortcomings(scenario, parts),
            *(f"{check} passes, so it must not be excluded" for check in parts.keys() - failed),
        ]
    if verdict.problems:
        verdict.word = "FAIL"
    return verdict


def _shortcomings(scenario: Scenario, excluded: Mapping[str, int]) -> list[str]:
    """Why a scenario did not pass; nothing when it did."""
    if not scenario.checks:
        return ["left no checks"]
    failed = [
        f"{check.id} ({check.status.lower()}): {check.message}"
        for check in scenario.checks
        if check.failed and check.id not in excluded
    ]
    if not failed and not any(check.proves for check in scenario.checks):
        return ["proves nothing: every check was skipped"]
    return failed
