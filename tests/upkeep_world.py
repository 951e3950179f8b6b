"""Tools of the code toolset, called as a server calls them, in a small world."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats import app
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Done, Failed, Outcome, Rejected
from cleats.contract.violations import Validator
from cleats.runtime.call import Call
from cleats.runtime.progress import Progress, Report
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings
from cleats.toolsets.code.search import tool as searching
from tests.index_world import World

SOURCE = '''"""A module."""


def first(value):
    """Give the value back as it was given."""
    return value


class Second:
    def third(self):
        return first(3)
'''


@dataclass
class Upkeep:
    """A repository, its cache, and a server for each call."""

    world: World
    more: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    """Codes of the last call."""
    phases: list[str] = field(default_factory=list)
    """Of the progress of the last call."""

    @property
    def settings(self) -> Settings:
        world = self.world
        given = {
            "cache_dir": world.cache,
            "project_dir": world.root,
            "data_dir": world.folder / "data",
            "home": world.folder / "home",
            "index_workers": 1,
            "index_lint": "off",
            "telemetry": "off",
            **self.more,
        }
        return Settings(**given)

    def calls(self, *wanted: tuple[str, dict[str, Any]]) -> list[Outcome]:
        """Call tools one after the other on one server."""

        async def send(report: Report) -> None:
            self.phases.append(report.phase)

        async def main() -> list[Outcome]:
            vitals, outcomes = Vitals(), []
            toolsets = app.toolsets(self.settings, ["code"], vitals)
            async with app.dispatching(self.settings, toolsets, vitals) as dispatcher:
                for tool, given in wanted:
                    self.phases.clear()
                    call = Call(tool=tool, arguments=given, reporter=Progress(send))
                    outcomes.append(await dispatcher.dispatch(call))
                    self.warnings = [each["code"] for each in call.meta.warnings]
            return outcomes

        with pytest.MonkeyPatch.context() as patch:
            # A server that gets ready for a search holds the index, whatever it is asked meanwhile.
            patch.setattr(searching, "QUIET", 3600.0)
            return anyio.run(main)

    def result(self, tool: str, **given: Any) -> dict[str, Any]:
        """What a tool answers, which fits its schema."""
        [outcome] = self.calls((tool, given))
        return self.done(tool, outcome)

    def done(self, tool: str, outcome: Outcome) -> dict[str, Any]:
        assert isinstance(outcome, Done), outcome
        schema = app.catalogue(self.settings).find(tool).output
        assert not list(Validator(schema or {}).violations(outcome.result))
        return dict(outcome.result)

    def error(self, tool: str, code: ErrorCode, **given: Any) -> ToolError:
        """How a tool fails, with a word about what to do."""
        [outcome] = self.calls((tool, given))
        assert isinstance(outcome, Failed | Rejected), outcome
        assert outcome.error.code is code, outcome.error
        assert outcome.error.hint
        return outcome.error


def made(folder: Path) -> Upkeep:
    """A small repository without an index."""
    world = World(folder)
    world.write("app/core.py", SOURCE)
    world.write("README.md", "# Title\n\nSome words about it.\n")
    (folder / "home").mkdir()
    return Upkeep(world)


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Everything below a folder, files with their size and time."""
    return {
        str(path.relative_to(folder)): (0, 0)
        if path.is_dir()
        else (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
        if not path.name.startswith(".tantivy")  # a server locks what it gets ready to search
    }
