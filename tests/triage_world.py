"""A small shop with vulnerable packages, the reports of its scanners, and a server beside it."""

import json
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio
import msgspec

from cleats import app
from cleats.contract.errors import ToolError
from cleats.contract.outcome import Done, Failed, Rejected
from cleats.contract.violations import Validator
from cleats.runtime.call import Call
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.triage.archive import Archive
from cleats.toolsets.code.triage.records import Record
from tests.index_world import World
from tests.postgres import database

REPORTS = Path(__file__).parent / "fixtures" / "triage"

LOADER = '''"""Reads the settings of a shop."""

import yaml


def load(text):
    # CVE-2020-14343 does not matter here: the text is ours and never comes from a user
    return yaml.load(text)
'''


KEEPERS = ("folder", "database")


@cache
def fleet() -> str:
    """A database for all shops of this process: each has a name of its own."""
    return database()


@dataclass
class Shop(World):
    """A world whose server keeps records: in a folder, or in a database."""

    database_url: str = ""
    index_name: str = ""
    index_url: str = ""

    @classmethod
    def at(cls, folder: Path, keeper: str = "folder", name: str = "") -> "Shop":
        shop = cls(folder)
        if keeper == "database":
            shop.database_url, shop.index_name = fleet(), name or f"shop-{token_hex(8)}"
        shop.options = msgspec.structs.replace(shop.options, records=str(shop.kept))
        shop.write("app/loader.py", LOADER)
        shop.write("requirements.txt", "PyYAML==5.3\n")
        shop.write("NOTES.md", "# Notes\n\nPyYAML stays because of GHSA-8q59-q68h-6hv4.\n")
        return shop

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def kept(self) -> Path:
        """Where records lie, or their copies."""
        return (self.cache if self.database_url else self.data) / "records"

    @property
    def archive(self) -> Archive:
        return Archive.of(self.kept, Repository(self.root))

    @property
    def settings(self) -> Settings:
        return Settings(
            cache_dir=self.cache,
            data_dir=self.data,
            project_dir=self.root,
            database_url=self.database_url,
            index_name=self.index_name,
            index_url=self.index_url,
            index_workers=1,
            index_lint="off",
            telemetry="off",
        )

    def call(self, tool: str, **given: Any) -> dict[str, Any]:
        """What a tool answers, which fits its schema; raises when it fails."""
        _, result = anyio.run(partial(self._call, tool, given))
        return result

    def warned(self, tool: str, **given: Any) -> list[str]:
        """The codes of the warnings that an answer has."""
        call, _ = anyio.run(partial(self._call, tool, given))
        return [warning["code"] for warning in call.meta.warnings]

    async def _call(self, tool: str, given: dict[str, Any]) -> tuple[Call, dict[str, Any]]:
        vitals = Vitals()
        made = app.toolsets(self.settings, ["code"], vitals)
        async with app.dispatching(self.settings, made, vitals) as dispatcher:
            call = Call(tool=tool, arguments=given)
            outcome = await dispatcher.dispatch(call)
        if isinstance(outcome, Failed | Rejected):
            raise outcome.error
        assert isinstance(outcome, Done)
        schema = app.catalogue(self.settings).find(tool).output
        assert not list(Validator(schema or {}).violations(outcome.result))
        return call, dict(outcome.result)

    def refused(self, tool: str, **given: Any) -> ToolError:
        """The error that a tool answers with."""
        try:
            answer = self.call(tool, **given)
        except ToolError as error:
            return error
        raise AssertionError(answer)

    def ingest(self, source: str, content: Any = None, **given: Any) -> dict[str, Any]:
        """Take in a report of the fixtures, or what is given instead."""
        place = self.folder / "report.json"
        if content is None:
            [report] = REPORTS.glob(f"{source}.json*")
            content = report.read_bytes()
        place.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return self.call("triage_ingest", source=source, inputPath=str(place), **given)

    def record(self, record_id: str) -> Record:
        found = self.archive.find(record_id)
        assert found is not None
        return found

    def records(self, source: str, content: Any = None, **given: Any) -> list[Record]:
        """The records of a report, in its order."""
        done = self.ingest(source, content, **given)
        assert not done["errors"], done["errorDetails"]
        return [self.record(each) for each in done["recordIds"]]
