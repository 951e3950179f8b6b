"""The official suite: run it for one revision, and read its checks ourselves.

Its exit code and its summary are too kind: a warning passes, and so does a scenario in which
every check was skipped. So only the lists of scenarios and the `checks.json` files count here.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.npm import Tools
from conformance.processes import Ended, finished

REVISIONS = ("2025-11-25", "2026-07-28")

LIMIT = 600.0
"""Seconds for all scenarios of one revision. They take 10 to 40, and a busy machine many more."""

_RESULT = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a scenario looked at. Ids may repeat within a scenario."""

    id: str
    status: str
    message: str = ""

    @property
    def failed(self) -> bool:
        """A warning is a SHOULD that was not kept; we keep those too."""
        return self.status in {"FAILURE", "WARNING"}

    @property
    def proves(self) -> bool:
        """Whether something was seen to work; that messages are well formed is not enough."""
        return self.status == "SUCCESS" and self.id != "wire-schema-valid"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario of a revision, and what it found; no checks when it left none."""

    name: str
    scored: bool
    checks: Sequence[Check] = ()


async def run(tools: Tools, url: str, revision: str, out: Path) -> list[Scenario]:
    """Every scenario of a revision, scored or not, against the server at `url`.

    Raises:
        Broken: the suite did not end.
    """
    _clear(out)
    command = [tools.suite, "server", "--url", url, "--requirements", revision, "-o", str(out)]
    ended = await finished(command, env=tools.env, limit=LIMIT)
    return _read(out, ended, required(tools.requirements / f"{revision}.yaml"))


def required(listing: Path) -> Mapping[str, bool]:
    """The server scenarios in one of the suite's lists, and whether each is scored.

    The lists are YAML of the plainest kind, and frozen, so a parser for YAML is not needed.
    """
    scenarios: dict[str, bool] = {}
    section = latest = ""
    for line in listing.read_text().splitlines():
        if found := re.fullmatch(r"(\w+):", line):
            section = found[1]
        elif section == "server" and (found := re.fullmatch(r"  - ([\w-]+)", line)):
            scenarios[found[1]] = True
        elif found := re.fullmatch(r"  - scenario: (\S+)", line):
            latest = found[1]
        elif section == "not_scored" and line == "    leg: server":
            scenarios[latest] = False
    return scenarios


def _clear(out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)


def _read(out: Path, ended: Ended, scenarios: Mapping[str, bool]) -> list[Scenario]:
    (out / "output.txt").write_text(ended.stdout + ended.stderr)  # for whoever looks into a failure
    found = dict(_results(out))
    return [Scenario(name, scored, found.get(name, ())) for name, scored in scenarios.items()]


def _results(out: Path) -> Iterator[tuple[str, list[Check]]]:
    for file in out.glob("*/checks.json"):
        if found := _RESULT.fullmatch(file.parent.name):
            yield found["scenario"], [_check(raw) for raw in json.loads(file.read_text())]


def _check(raw: Mapping[str, str]) -> Check:
    return Check(raw["id"], raw["status"], str(raw.get("errorMessage", "")))
