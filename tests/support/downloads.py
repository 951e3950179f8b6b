"""A server with the download tools, a repository and a cache, for tests that call the tools."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from cleats import app
from cleats.contract.errors import ToolError
from cleats.contract.outcome import Done, Failed, Outcome, Rejected
from cleats.contract.violations import Validator
from cleats.runtime.call import ToolCall
from cleats.runtime.progress import ProgressReport, ProgressReporter
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings, make_settings


@dataclass
class DownloadClient:
    """A client that calls the download tools, each call on a new server."""

    folder: Path
    extra_settings: dict[str, Any] = field(default_factory=lambda: {"download_hosts": ("127.0.0.1",)})
    reports: list[ProgressReport] = field(default_factory=list)
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
        return make_settings(cache_dir=self.cache, project_dir=self.root, telemetry="off", **self.extra_settings)

    def call_tool(self, tool: str, **arguments: Any) -> Outcome:
        async def send(report: ProgressReport) -> None:
            self.reports.append(report)

        async def main() -> Outcome:
            call = ToolCall(tool=tool, arguments=arguments, reporter=ProgressReporter(send))
            vitals = ServerStatus()
            toolsets = app.load_toolsets(self.settings, ["code"], vitals)
            async with app.open_dispatcher(self.settings, toolsets, vitals) as dispatcher:
                outcome = await dispatcher.dispatch(call)
            self.warnings = [warning["code"] for warning in call.meta.warnings]
            return outcome

        return anyio.run(main)

    def expect_result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed and return its result, checked against the schema."""
        outcome = self.call_tool(tool, **arguments)
        assert isinstance(outcome, Done), outcome
        schema = app.build_registry(self.settings).find(tool).output
        assert not list(Validator(schema or {}).find_violations(outcome.result))
        return dict(outcome.result)

    def expect_error(self, tool: str, **arguments: Any) -> ToolError:
        """Call a tool that must fail and return its error, whose code the tool must declare."""
        outcome = self.call_tool(tool, **arguments)
        assert isinstance(outcome, Failed | Rejected), outcome
        assert outcome.error.code in app.build_registry(self.settings).find(tool).codes
        return outcome.error

    def hash_files(self) -> dict[str, str]:
        """Return every file below the folder with the first digits of its hash."""
        return {
            path.relative_to(self.folder).as_posix(): compute_sha256(path.read_bytes())[:8]
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }


def compute_sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
