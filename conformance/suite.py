"""The official suite: run it for one revision, and evaluate its checks here.

Its exit code and its summary are too lenient: a warning passes, and so does a scenario in which
every check was skipped. So only the lists of scenarios and the `checks.json` files count here.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.npm import ConformanceTools
from conformance.processes import FinishedProcess, run_command

SUITE_REVISIONS = ("2025-11-25", "2026-07-28")

SUITE_TIMEOUT_SECONDS = 600.0
"""Seconds for all scenarios of one revision. They take 10 to 40, and many more on a busy
machine."""

_RESULT_FOLDER_PATTERN = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


@dataclass(frozen=True, slots=True)
class SuiteCheck:
    """One check of a scenario. Ids may repeat within a scenario."""

    id: str
    status: str
    message: str = ""

    @property
    def is_failed(self) -> bool:
        """True for a failure or a warning, which is a SHOULD that was not met."""
        return self.status in {"FAILURE", "WARNING"}

    @property
    def is_proof(self) -> bool:
        """True if something was seen to work; well-formed messages alone are not enough."""
        return self.status == "SUCCESS" and self.id != "wire-schema-valid"


@dataclass(frozen=True, slots=True)
class SuiteScenario:
    """A scenario of a revision and its checks, which are empty if it left none."""

    name: str
    scored: bool
    checks: Sequence[SuiteCheck] = ()


async def run_suite(tools: ConformanceTools, url: str, revision: str, out: Path) -> list[SuiteScenario]:
    """Run every scenario of a revision, scored or not, against the server at `url`.

    Raises:
        BrokenProcessError: The suite did not end.
    """
    _clear_folder(out)
    command = [tools.suite, "server", "--url", url, "--requirements", revision, "-o", str(out)]
    completed = await run_command(command, env=tools.env, limit=SUITE_TIMEOUT_SECONDS)
    return _read_scenarios(out, completed, parse_requirements(tools.requirements / f"{revision}.yaml"))


def parse_requirements(listing: Path) -> Mapping[str, bool]:
    """Return the server scenarios in one of the suite's lists, and whether each is scored.

    The lists are very simple YAML, and frozen, so a YAML parser is not needed.
    """
    scenarios: dict[str, bool] = {}
    section = latest = ""
    for line in listing.read_text().splitlines():
        if match := re.fullmatch(r"(\w+):", line):
            section = match[1]
        elif section == "server" and (match := re.fullmatch(r"  - ([\w-]+)", line)):
            scenarios[match[1]] = True
        elif match := re.fullmatch(r"  - scenario: (\S+)", line):
            latest = match[1]
        elif section == "not_scored" and line == "    leg: server":
            scenarios[latest] = False
    return scenarios


def _clear_folder(out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)


def _read_scenarios(out: Path, completed: FinishedProcess, scenarios: Mapping[str, bool]) -> list[SuiteScenario]:
    (out / "output.txt").write_text(completed.stdout + completed.stderr)  # for debugging a failure
    checks_by_scenario = dict(_iterate_results(out))
    return [SuiteScenario(name, scored, checks_by_scenario.get(name, ())) for name, scored in scenarios.items()]


def _iterate_results(out: Path) -> Iterator[tuple[str, list[SuiteCheck]]]:
    for file in out.glob("*/checks.json"):
        if match := _RESULT_FOLDER_PATTERN.fullmatch(file.parent.name):
            yield match["scenario"], [_parse_check(raw) for raw in json.loads(file.read_text())]


def _parse_check(raw: Mapping[str, str]) -> SuiteCheck:
    return SuiteCheck(raw["id"], raw["status"], str(raw.get("errorMessage", "")))
