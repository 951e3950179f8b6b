"""Cleats with the skills toolset, an echo to compare with, and a refresh that can be asked for."""

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
from cleats.contract.tools import Changed, Context, Tool, Toolset, arguments
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings
from cleats.toolsets.skills.library import Library
from cleats.toolsets.skills.tools import toolset
from cleats.transports.stdio import claimed


class Bench:
    """A second library over the same folders, which is refreshed when the benchmark says so."""

    def __init__(self, settings: Settings) -> None:
        self._library = Library(settings)
        self._cost = 0.0

    def _timed(self) -> float:
        begun = time.thread_time()
        self._library.refresh()
        return time.thread_time() - begun

    async def echo(self, args: Mapping[str, Any], _context: Context) -> str:
        return str(args["text"])

    async def build(self, _args: Mapping[str, Any], _context: Context) -> str:
        return str(self._cost)

    async def refresh(self, _args: Mapping[str, Any], _context: Context) -> str:
        return str(await to_thread.run_sync(self._timed))

    @asynccontextmanager
    async def running(self, _changed: Changed) -> AsyncIterator[None]:
        self._cost = await to_thread.run_sync(self._timed)
        yield

    def toolset(self) -> Toolset:
        text = {"text": {"type": "string"}}
        rows: dict[str, Any] = {
            "echo": (text, self.echo),
            "build": ({}, self.build),
            "refresh": ({}, self.refresh),
        }
        tools = [
            Tool(name=name, description=name, input=arguments(given), run=run, payload=CONTENT)
            for name, (given, run) in rows.items()
        ]
        return Toolset(name="bench", purpose="Measure.", tools=tools, running=self.running)


def main() -> None:
    """Serve the folder; `alone` leaves out what only the benchmark needs."""
    settings = Settings(
        data_dir=Path.cwd(),
        telemetry="off",
        log_level="warning",
        skill_dirs=(Path(sys.argv[1]),),
        skill_refresh=0.0,
        skill_watch="off",
    )
    served = [toolset(settings)]
    if sys.argv[2:] != ["alone"]:
        served.append(Bench(settings).toolset())
    with claimed() as descriptors:
        anyio.run(serve_stdio, settings, served, Vitals(), descriptors)


if __name__ == "__main__":
    gc.disable()
    main()
