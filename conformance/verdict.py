"""The verdict on one scenario from its checks and the exclusions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.suite import SuiteScenario

RELAY_MARK = "r"
"""The mark of a scenario that passes, in part or completely, only because of the relay."""


@dataclass(slots=True)
class ScenarioVerdict:
    """A cell of the table, and its explanation."""

    scenario: str
    scored: bool
    word: str = "pass"
    marks: list[str] = field(default_factory=list)
    """The numbers of the exclusions that apply, and the relay's mark."""

    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join([self.word, *(f"[{mark}]" for mark in self.marks)])


def judge_scenarios(
    scenarios: Sequence[SuiteScenario], excluded: Mapping[str, int], relayed: Collection[str] = ()
) -> list[ScenarioVerdict]:
    """Return a verdict for every scenario of a run.

    `excluded` has what may fail, and must: scenarios or `scenario:check`, each with the number of
    its reason. `relayed` has the scenarios that get the relay's mark.
    """
    verdicts = [_judge_scenario(scenario, excluded) for scenario in scenarios]
    for verdict in verdicts:
        if verdict.scenario in relayed:
            verdict.marks.append(RELAY_MARK)
    return verdicts


def find_unknown_exclusions(scenarios: Sequence[SuiteScenario], excluded: Mapping[str, int]) -> list[str]:
    """Return an error for every exclusion whose scenario is not part of the run."""
    names = {scenario.name for scenario in scenarios}
    return [
        f"{what} is excluded, but there is no such scenario" for what in excluded if what.partition(":")[0] not in names
    ]


def _judge_scenario(scenario: SuiteScenario, excluded: Mapping[str, int]) -> ScenarioVerdict:
    verdict = ScenarioVerdict(scenario.name, scenario.scored)
    if scenario.name in excluded:
        verdict.word = "excluded"
        verdict.marks = [str(excluded[scenario.name])]
        if not _list_shortcomings(scenario, ()):
            verdict.problems = ["passes, so it must not be excluded"]
    else:
        excluded_checks = _select_excluded_checks(scenario.name, excluded)
        failed = {check.id for check in scenario.checks if check.is_failed}
        verdict.marks = sorted({str(excluded_checks[check]) for check in excluded_checks.keys() & failed})
        stale = sorted(excluded_checks.keys() - failed)
        verdict.problems = _list_shortcomings(scenario, excluded_checks)
        verdict.problems += [f"{check} passes, so it must not be excluded" for check in stale]
    if verdict.problems:
        verdict.word = "FAIL"
    return verdict


def _select_excluded_checks(scenario: str, excluded: Mapping[str, int]) -> dict[str, int]:
    """Return the single checks of a scenario that are excluded."""
    split = ((what.partition(":"), number) for what, number in excluded.items())
    return {check: number for (name, _, check), number in split if name == scenario}


def _list_shortcomings(scenario: SuiteScenario, excluded: Collection[str]) -> list[str]:
    """Return the reasons why a scenario did not pass, none if it did."""
    if not scenario.checks:
        return ["left no checks"]
    failed = [
        f"{check.id} ({check.status.lower()}): {check.message}"
        for check in scenario.checks
        if check.is_failed and check.id not in excluded
    ]
    if not failed and not any(check.is_proof for check in scenario.checks):
        return ["proves nothing: no check succeeded"]
    return failed
