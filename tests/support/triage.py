"""A small shop with vulnerable packages, the reports of its scanners, and a server for it."""

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
from cleats.runtime.call import ToolCall
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings, make_settings
from cleats.toolsets.code.records.archive import RecordArchive
from cleats.toolsets.code.records.model import TriageRecord
from cleats.toolsets.code.repository import Repository
from tests.support.indexes import IndexedRepository
from tests.support.paths import TESTS_FOLDER
from tests.support.postgres import create_database

REPORTS_FOLDER = TESTS_FOLDER / "fixtures" / "triage"

LOADER_SOURCE = '''"""Reads the settings of a shop."""

import yaml


def load(text):
    # CVE-2020-14343 does not matter here: the text is ours and never comes from a user
    return yaml.load(text)
'''


RECORD_STORES = ("folder", "database")


@cache
def get_shared_database() -> str:
    """Create one database for all shops of this process, each of which has a unique name."""
    return create_database()


@dataclass
class TriageShop(IndexedRepository):
    """A repository whose server keeps records in a folder or in a database."""

    database_url: str = ""
    index_name: str = ""
    index_url: str = ""

    @classmethod
    def create(cls, folder: Path, record_store: str = "folder", name: str = "") -> "TriageShop":
        shop = cls(folder)
        if record_store == "database":
            shop.database_url, shop.index_name = get_shared_database(), name or f"shop-{token_hex(8)}"
        shop.options = msgspec.structs.replace(shop.options, records=str(shop.records_dir))
        shop.write_file("app/loader.py", LOADER_SOURCE)
        shop.write_file("requirements.txt", "PyYAML==5.3\n")
        shop.write_file("NOTES.md", "# Notes\n\nPyYAML stays because of GHSA-8q59-q68h-6hv4.\n")
        return shop

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    @property
    def records_dir(self) -> Path:
        """The folder of the records, or of their copies."""
        return (self.cache if self.database_url else self.data_dir) / "records"

    @property
    def archive(self) -> RecordArchive:
        return RecordArchive.from_repository(self.records_dir, Repository(self.root))

    @property
    def settings(self) -> Settings:
        return make_settings(
            cache_dir=self.cache,
            data_dir=self.data_dir,
            project_dir=self.root,
            database_url=self.database_url,
            index_name=self.index_name,
            index_url=self.index_url,
            index_workers=1,
            index_lint="off",
            telemetry="off",
        )

    def call_tool(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result, checked against its schema.

        Raises:
            ToolError: the tool failed.
        """
        _, result = anyio.run(partial(self._dispatch_call, tool, arguments))
        return result

    def list_warning_codes(self, tool: str, **arguments: Any) -> list[str]:
        """Call a tool and return the codes of the warnings in its answer."""
        call, _ = anyio.run(partial(self._dispatch_call, tool, arguments))
        return [warning["code"] for warning in call.meta.warnings]

    async def _dispatch_call(self, tool: str, arguments: dict[str, Any]) -> tuple[ToolCall, dict[str, Any]]:
        vitals = ServerStatus()
        toolsets = app.load_toolsets(self.settings, ["code"], vitals)
        async with app.open_dispatcher(self.settings, toolsets, vitals) as dispatcher:
            call = ToolCall(tool=tool, arguments=arguments)
            outcome = await dispatcher.dispatch(call)
        if isinstance(outcome, Failed | Rejected):
            raise outcome.error
        assert isinstance(outcome, Done)
        schema = app.build_registry(self.settings).find(tool).output
        assert not list(Validator(schema or {}).find_violations(outcome.result))
        return call, dict(outcome.result)

    def expect_error(self, tool: str, **arguments: Any) -> ToolError:
        """Call a tool that must fail and return its error."""
        try:
            answer = self.call_tool(tool, **arguments)
        except ToolError as error:
            return error
        raise AssertionError(answer)

    def ingest_report(self, source: str, content: Any = None, **arguments: Any) -> dict[str, Any]:
        """Ingest a report of the fixtures, or the given content instead."""
        input_file = self.folder / "report.json"
        if content is None:
            [report] = REPORTS_FOLDER.glob(f"{source}.json*")
            content = report.read_bytes()
        input_file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return self.call_tool("triage_ingest", source=source, inputPath=str(input_file), **arguments)

    def find_record(self, record_id: str) -> TriageRecord:
        record = self.archive.find(record_id)
        assert record is not None
        return record

    def ingest_records(self, source: str, content: Any = None, **arguments: Any) -> list[TriageRecord]:
        """Ingest a report and return its records in order."""
        result = self.ingest_report(source, content, **arguments)
        assert not result["errors"], result["errorDetails"]
        return [self.find_record(record_id) for record_id in result["recordIds"]]
