"""What one scenario's checks amount to, given what is excluded."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.suite import Scenario

RELAY = "r"
"""The mark of a scenario that passes, in part or whole, by the relay's own doing."""


@dataclass(slots=True)
class Verdict:
    """A cell of the table, and why it reads as it does."""

    scenario: str
    scored: bool
    word: str = "pass"
    marks: list[str] = field(default_factory=list)
    """The numbers of the exclusions that had a part in it, and the relay's mark."""

    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join([self.word, *(f"[{mark}]" for mark in self.marks)])


def judge(
    scenarios: Sequence[Scenario], excluded: Mapping[str, int], relayed: Collection[str] = ()
) -> list[Verdict]:
    """A verdict for every scenario of a run.

    `excluded` has what may fail, and must: scenarios or `scenario:check`, each with the number of
    its reason. `relayed` has the scenarios that get the relay's mark.
    """
    verdicts = [_verdict(scenario, excluded) for scenario in scenarios]
    for verdict in verdicts:
        if verdict.scenario in relayed:
            verdict.marks.append(RELAY)
    return verdicts


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
    if scenario.name in excluded:
        verdict.word = "excluded"
        verdict.marks = [str(excluded[scenario.name])]
        if not _shortcomings(scenario, ()):
            verdict.problems = ["passes, so it must not be excluded"]
    else:
        checks = _checks(scenario.name, excluded)
        failed = {check.id for check in scenario.checks if check.failed}
        verdict.marks = sorted({str(checks[check]) for check in checks.keys() & failed})
        stale = sorted(checks.keys() - failed)
        verdict.problems = _shortcomings(scenario, checks)
        verdict.problems += [f"{check} passes, so it must not be excluded" for check in stale]
    if verdict.problems:
        verdict.word = "FAIL"
    return verdict


def _checks(scenario: str, excluded: Mapping[str, int]) -> dict[str, int]:
    """The single checks of a scenario that are excluded."""
    split = ((what.partition(":"), number) for what, number in excluded.items())
    return {check: number for (name, _, check), number in split if name == scenario}


def _shortcomings(scenario: Scenario, excluded: Collection[str]) -> list[str]:
    """Why a scenario did not pass; nothing when it did."""
    if not scenario.checks:
        return ["left no checks"]
    failed = [
        f"{check.id} ({check.status.lower()}): {check.message}"
        for check in scenario.checks
        if check.failed and check.id not in excluded
    ]
    if not failed and not any(check.proves for check in scenario.checks):
        return ["proves nothing: no check succeeded"]
    return failed
