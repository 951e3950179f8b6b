"""A server with the download tools, a repository and a cache, for the tests that call them."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from cleats import app
from cleats.contract.errors import ToolError
from cleats.contract.outcome import Done, Failed, Outcome, Rejected
from cleats.contract.violations import Validator
from cleats.runtime.call import Call
from cleats.runtime.progress import Progress, Report
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings


@dataclass
class Downloads:
    """Calls the tools."""

    folder: Path
    more: dict[str, Any] = field(default_factory=lambda: {"download_hosts": ("127.0.0.1",)})
    reports: list[Report] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root.mkdir()
        (self.root / ".git").mkdir()

    @property
    def root(self) -> Path:
        return self.folder / "project"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def settings(self) -> Settings:
        return Settings(cache_dir=self.cache, project_dir=self.root, telemetry="off", **self.more)

    def outcome(self, tool: str, **given: Any) -> Outcome:
        async def send(report: Report) -> None:
            self.reports.append(report)

        async def main() -> Outcome:
            call = Call(tool=tool, arguments=given, reporter=Progress(send))
            vitals = Vitals()
            sets = app.toolsets(self.settings, ["code"], vitals)
            async with app.dispatching(self.settings, sets, vitals) as dispatcher:
                outcome = await dispatcher.dispatch(call)
            self.warnings = [warning["code"] for warning in call.meta.warnings]
            return outcome

        return anyio.run(main)

    def result(self, tool: str, **given: Any) -> dict[str, Any]:
        """What a tool answers, checked against its schema."""
        outcome = self.outcome(tool, **given)
        assert isinstance(outcome, Done), outcome
        schema = app.catalogue(self.settings).find(tool).output
        assert not list(Validator(schema or {}).violations(outcome.result))
        return dict(outcome.result)

    def error(self, tool: str, **given: Any) -> ToolError:
        """How a tool fails, with a code that it says it may answer with."""
        outcome = self.outcome(tool, **given)
        assert isinstance(outcome, Failed | Rejected), outcome
        assert outcome.error.code in app.catalogue(self.settings).find(tool).codes
        return outcome.error

    def tree(self) -> dict[str, str]:
        """Every file below, with the beginning of its hash."""
        return {
            path.relative_to(self.folder).as_posix(): digest(path.read_bytes())[:8]
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
