"""Cleats with the skills toolset, an echo to compare with, and a refresh on request."""

import gc
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from cleats.app import serve_stdio
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Context, ListChangeCallback, Tool, Toolset, arguments
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings, make_settings
from cleats.toolsets.skills.library import SkillLibrary
from cleats.toolsets.skills.tools import toolset
from cleats.transports.stdio import claim_stdio


class RefreshProbe:
    """A second library over the same folders, which is refreshed when the benchmark asks for it."""

    def __init__(self, settings: Settings) -> None:
        self._library = SkillLibrary(settings)
        self._build_seconds = 0.0

    def _measure_refresh(self) -> float:
        start_time = time.thread_time()
        self._library.refresh()
        return time.thread_time() - start_time

    async def echo(self, args: Mapping[str, Any], _context: Context) -> str:
        return str(args["text"])

    async def build(self, _args: Mapping[str, Any], _context: Context) -> str:
        return str(self._build_seconds)

    async def refresh(self, _args: Mapping[str, Any], _context: Context) -> str:
        return str(await to_thread.run_sync(self._measure_refresh))

    @asynccontextmanager
    async def running(self, _changed: ListChangeCallback) -> AsyncIterator[None]:
        self._build_seconds = await to_thread.run_sync(self._measure_refresh)
        yield

    def build_toolset(self) -> Toolset:
        text = {"text": {"type": "string"}}
        rows: dict[str, Any] = {
            "echo": (text, self.echo),
            "build": ({}, self.build),
            "refresh": ({}, self.refresh),
        }
        tools = [
            Tool(name=name, description=name, input=arguments(properties), run=run, payload=CONTENT)
            for name, (properties, run) in rows.items()
        ]
        return Toolset(name="bench", purpose="Measure.", tools=tools, running=self.running)


def main() -> None:
    """Serve the folder; `alone` leaves out the tools that only the benchmark needs."""
    settings = make_settings(
        data_dir=Path.cwd(),
        telemetry="off",
        log_level="warning",
        skill_dirs=(Path(sys.argv[1]),),
        skill_refresh=0.0,
        skill_watch="off",
    )
    toolsets = [toolset(settings)]
    if sys.argv[2:] != ["alone"]:
        toolsets.append(RefreshProbe(settings).build_toolset())
    with claim_stdio() as descriptors:
        anyio.run(serve_stdio, settings, toolsets, ServerStatus(), descriptors)


if __name__ == "__main__":
    gc.disable()
    main()
