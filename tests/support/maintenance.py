"""Tools of the code toolset, called as a server calls them, on a small repository."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats import app
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Done, Failed, Outcome, Rejected
from cleats.contract.violations import Validator
from cleats.runtime.call import ToolCall
from cleats.runtime.progress import ProgressReport, ProgressReporter
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings, make_settings
from cleats.toolsets.code.search import tool as searching
from tests.support.indexes import IndexedRepository

MODULE_SOURCE = '''"""A module."""


def first(value):
    """Give the value back as it was given."""
    return value


class Second:
    def third(self):
        return first(3)
'''


@dataclass
class MaintenanceClient:
    """A client for a repository and its cache, with a new server for each group of calls."""

    repository: IndexedRepository
    extra_settings: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    """The codes of the warnings of the last call."""
    phases: list[str] = field(default_factory=list)
    """The phases in the progress of the last call."""

    @property
    def settings(self) -> Settings:
        repository = self.repository
        values = {
            "cache_dir": repository.cache,
            "project_dir": repository.root,
            "data_dir": repository.folder / "data",
            "home": repository.folder / "home",
            "index_workers": 1,
            "index_lint": "off",
            "telemetry": "off",
            **self.extra_settings,
        }
        return make_settings(**values)

    def call_tools(self, *requests: tuple[str, dict[str, Any]]) -> list[Outcome]:
        """Call tools one after the other on one server."""

        async def send(report: ProgressReport) -> None:
            self.phases.append(report.phase)

        async def main() -> list[Outcome]:
            vitals, outcomes = ServerStatus(), []
            toolsets = app.load_toolsets(self.settings, ["code"], vitals)
            async with app.open_dispatcher(self.settings, toolsets, vitals) as dispatcher:
                for tool, arguments in requests:
                    self.phases.clear()
                    call = ToolCall(tool=tool, arguments=arguments, reporter=ProgressReporter(send))
                    outcomes.append(await dispatcher.dispatch(call))
                    self.warnings = [warning["code"] for warning in call.meta.warnings]
            return outcomes

        with pytest.MonkeyPatch.context() as patch:
            # A server that warms up for a search holds a lease on the index during other calls.
            patch.setattr(searching, "WARM_UP_DELAY_SECONDS", 3600.0)
            return anyio.run(main)

    def expect_result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed and return its result."""
        [outcome] = self.call_tools((tool, arguments))
        return self.check_result(tool, outcome)

    def check_result(self, tool: str, outcome: Outcome) -> dict[str, Any]:
        """Return the result of a successful outcome, checked against the tool's schema."""
        assert isinstance(outcome, Done), outcome
        schema = app.build_registry(self.settings).find(tool).output
        assert not list(Validator(schema or {}).find_violations(outcome.result))
        return dict(outcome.result)

    def expect_error(self, tool: str, code: ErrorCode, **arguments: Any) -> ToolError:
        """Call a tool that must fail with this code and a hint, and return the error."""
        [outcome] = self.call_tools((tool, arguments))
        assert isinstance(outcome, Failed | Rejected), outcome
        assert outcome.error.code is code, outcome.error
        assert outcome.error.hint
        return outcome.error


def create_maintenance_client(folder: Path) -> MaintenanceClient:
    """Create a small repository without an index, and a client for it."""
    repository = IndexedRepository(folder)
    repository.write_file("app/core.py", MODULE_SOURCE)
    repository.write_file("README.md", "# Title\n\nSome words about it.\n")
    (folder / "home").mkdir()
    return MaintenanceClient(repository)


def list_file_stats(folder: Path) -> dict[str, tuple[int, int]]:
    """Return everything below a folder, files with their size and time."""
    return {
        str(path.relative_to(folder)): (0, 0) if path.is_dir() else (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
        if not path.name.startswith(".tantivy")  # a server locks the index while it warms up
    }
