"""Keeping the records up with the journals, in the background and never in the way.

A run only says that it moved. Whoever has time then reads the journal from where it was read last;
what a killed process did not get to is read by the next one, or by whoever asks for the records.
"""

import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from cleats.contract.errors import ToolError
from cleats.contract.tools import Context, Handler, Tool
from cleats.toolsets.launch.store.port import RunStore
from cleats.toolsets.launch.telemetry import records
from cleats.toolsets.launch.telemetry.ledger import Collector, Ledger
from cleats.toolsets.launch.telemetry.sender import Sender

log = logging.getLogger(__name__)

FILE: Final = "telemetry.sqlite"

WAITING: Final = 1000
"""Things to write down that may wait; more are dropped, and the journal still has what matters."""


@dataclass(eq=False)
class Watch:
    """The records of one data folder."""

    folder: Path
    store: Callable[[], RunStore]
    collector: Collector | None = None
    """Who gets the records of runs that name nobody."""
    tokens: Callable[[], Mapping[str, str]] = dict
    _jobs: list[Callable[[], object]] = field(default_factory=list)
    _wake: anyio.Event | None = None

    @cached_property
    def ledger(self) -> Ledger:
        """The records; opened when something is first written or read."""
        return Ledger(self.folder / FILE)

    def moved(self, run_id: str) -> None:
        """A run has new events. Costs nothing; safe from the event loop only."""
        self._later(lambda: self.catch_up(run_id))

    def called(self, record: Mapping[str, Any]) -> None:
        """A tool was called."""
        self._later(lambda: self.ledger.keep([record], to=self._told(record)))

    def _later(self, job: Callable[[], object]) -> None:
        if self._wake is not None and len(self._jobs) < WAITING:
            self._jobs.append(job)
            self._wake.set()

    def catch_up(self, run_id: str) -> None:
        """Read the journal of a run to its end. Blocks."""
        store = self.store()
        before = self.ledger.read_up_to(run_id)
        events = store.events(run_id, before)
        if not events:
            return
        config = store.get(run_id).shown_config
        made = records.read(run_id, config, events)
        to, read = self._collector(config), (run_id, before, events[-1].seq)
        if self.ledger.keep(made.begun, made.ended, read=read, to=to):
            for record, commit in made.commits:
                self.ledger.associate(record, commit, to=to)

    def _told(self, record: Mapping[str, Any]) -> Collector | None:
        """Who gets the record of a call: whoever gets those of its run."""
        try:
            run_id = record.get("parent_run_id")
            return self._collector(self.store().get(run_id).shown_config if run_id else {})
        except ToolError:  # a call about a run that is not there
            return self.collector

    def _collector(self, config: Mapping[str, Any]) -> Collector | None:
        wanted = config.get("telemetry", {})
        if "endpoint_url" not in wanted:
            return self.collector
        return Collector(wanted["endpoint_url"], wanted.get("auth_token_env", ""))

    def journal(self, run_id: str) -> list[Mapping[str, Any]]:
        """The events of a run, as others may read them."""
        return [each.as_json() for each in self.store().events(run_id)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write down and send what comes, until the block ends; then what is left, for a moment."""
        self._wake = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._work, tasks)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
        self._wake = None
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._drain)
            if "ledger" in self.__dict__:
                self.ledger.close()

    async def _work(self, tasks: TaskGroup) -> None:
        sending = False
        while True:
            assert self._wake is not None  # noqa: S101 - inside `running`
            await self._wake.wait()
            self._wake = anyio.Event()
            await to_thread.run_sync(self._drain)
            if not sending:  # not before the first record: a start must cost nothing
                sending = True
                tasks.start_soon(self._send)

    async def _send(self) -> None:
        try:
            await Sender(self.ledger, self.tokens()).run()
        except Exception:
            log.exception("telemetry.sender")  # whatever it was, the server goes on

    def _drain(self) -> None:
        while self._jobs:
            job = self._jobs.pop(0)
            try:
                job()
            except (ToolError, OSError, sqlite3.Error) as error:
                # A full disk, a run that is gone: watchers see less, the run sees nothing.
                log.warning("telemetry.lost error=%s", type(error).__name__)
            except Exception:
                log.exception("telemetry.lost")

    def around(self, tool: Tool) -> Tool:
        """A tool of which every call is recorded."""
        return replace(tool, run=self._recorded(tool.name, tool.run))

    def _recorded(self, name: str, run: Handler) -> Handler:
        async def recorded(arguments: Mapping[str, Any], context: Context) -> Any:
            begun = time.time()
            run_id, status, summary = str(arguments.get("run_id", "")), "cancelled", ""
            try:
                answer = await run(arguments, context)
                run_id = run_id or str(answer.get("run_id", ""))
                status, summary = "success", _told(answer)
            except ToolError as error:
                status, summary = "failure", error.code.name
                raise
            except Exception as crash:
                status, summary = "failure", type(crash).__name__
                raise
            finally:
                self.called(
                    records.tool_call(
                        tool=name,
                        run_id=run_id,
                        arguments=arguments,
                        begun=begun,
                        ended=time.time(),
                        status=status,
                        trace=context.trace,
                        summary=summary,
                    )
                )
                if run_id:
                    self.moved(run_id)
            return answer

        return recorded


def _told(answer: Mapping[str, Any]) -> str:
    """An answer in a line: what state a run is in after it."""
    status = answer.get("status")
    state = answer.get("state") or (status.get("state") if isinstance(status, Mapping) else "")
    return str(state or "ok")
