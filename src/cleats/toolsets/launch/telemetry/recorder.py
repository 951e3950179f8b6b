"""The telemetry recorder: it updates records from the journals, and sends them, in the background.

A run only reports that it changed. The recorder then reads the journal from the last position; what a killed process
did not read is read by the next one, or by the next request for the records.

A run never waits for a collector. A message that cannot be sent stays in the outbox, even when the process ends, and
the next sender continues with it. One process sends at a time; a message that was sent but not yet removed when its
sender was killed is sent again, and its `event_id` lets the collector ignore the repetition.
"""

import logging
import secrets
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import time
from typing import Any, Final

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from cleats.contract.errors import ToolError
from cleats.contract.tools import Context, Tool
from cleats.system.http_client import HttpClient, RequestFailedError
from cleats.toolsets.launch.store.run_store import RunStore
from cleats.toolsets.launch.telemetry import journal_records
from cleats.toolsets.launch.telemetry.ledger import OutboxMessage, TelemetryCollector, TelemetryLedger

log = logging.getLogger(__name__)

LEDGER_FILE_NAME: Final = "telemetry.sqlite"

MAX_WAITING_JOBS: Final = 1000
"""Jobs that may wait; more are dropped, and the journal still has what matters."""


@dataclass(eq=False)
class TelemetryRecorder:
    """The telemetry recorder of one data folder."""

    folder: Path
    store: Callable[[], RunStore]
    collector: TelemetryCollector | None = None
    """The collector for runs that name none."""
    tokens: Callable[[], Mapping[str, str]] = dict
    _jobs: list[Callable[[], object]] = field(default_factory=list)
    _wake: anyio.Event | None = None

    @cached_property
    def ledger(self) -> TelemetryLedger:
        """The records; opened when something is first written or read."""
        return TelemetryLedger(self.folder / LEDGER_FILE_NAME)

    def queue_run(self, run_id: str) -> None:
        """Queue a run that has new events. Costs nothing; safe from the event loop only."""
        self._enqueue_job(lambda: self.catch_up(run_id))

    def queue_call(self, record: Mapping[str, Any]) -> None:
        """Queue the record of a tool call."""
        self._enqueue_job(lambda: self.ledger.store_records([record], collector=self._find_call_collector(record)))

    def _enqueue_job(self, job: Callable[[], object]) -> None:
        if self._wake is not None and len(self._jobs) < MAX_WAITING_JOBS:
            self._jobs.append(job)
            self._wake.set()

    def catch_up(self, run_id: str) -> None:
        """Read the journal of a run to its end. Blocks."""
        store = self.store()
        before = self.ledger.get_read_position(run_id)
        events = store.list_events(run_id, before)
        if not events:
            return
        config = store.get(run_id).shown_config
        derived = journal_records.derive_records(run_id, config, events)
        collector, read_range = self._find_collector(config), (run_id, before, events[-1].seq)
        if self.ledger.store_records(derived.new_records, derived.updates, read_range=read_range, collector=collector):
            for record, commit in derived.commits:
                self.ledger.associate_commit(record, commit, collector=collector)

    def _find_call_collector(self, record: Mapping[str, Any]) -> TelemetryCollector | None:
        """Return the collector for the record of a call: that of its run."""
        try:
            run_id = record.get("parent_run_id")
            return self._find_collector(self.store().get(run_id).shown_config if run_id else {})
        except ToolError:  # a call about a run that is not there
            return self.collector

    def _find_collector(self, config: Mapping[str, Any]) -> TelemetryCollector | None:
        telemetry_config = config.get("telemetry", {})
        if "endpoint_url" not in telemetry_config:
            return self.collector
        return TelemetryCollector(telemetry_config["endpoint_url"], telemetry_config.get("auth_token_env", ""))

    def read_journal(self, run_id: str) -> list[Mapping[str, Any]]:
        """Return the events of a run as others may read them."""
        return [event.as_json() for event in self.store().list_events(run_id)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write and send records while the block runs; then write the remaining ones."""
        self._wake = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._process_jobs, tasks)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
        self._wake = None
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._drain_jobs)
            if "ledger" in self.__dict__:
                self.ledger.close()

    async def _process_jobs(self, tasks: TaskGroup) -> None:
        is_sending = False
        while True:
            assert self._wake is not None  # noqa: S101 - inside `running`
            await self._wake.wait()
            self._wake = anyio.Event()
            await to_thread.run_sync(self._drain_jobs)
            if not is_sending:  # not before the first record: a start must cost nothing
                is_sending = True
                tasks.start_soon(self._send_messages)

    async def _send_messages(self) -> None:
        try:
            await TelemetrySender(self.ledger, self.tokens()).run()
        except Exception:
            log.exception("telemetry.sender")  # the server continues in any case

    def _drain_jobs(self) -> None:
        while self._jobs:
            job = self._jobs.pop(0)
            try:
                job()
            except (ToolError, OSError, sqlite3.Error) as error:
                # Such as a full disk or a missing run: records are lost, the run is not affected.
                log.warning("telemetry.lost error=%s", type(error).__name__)
            except Exception:
                log.exception("telemetry.lost")

    def wrap_tool(self, tool: Tool) -> Tool:
        """Return the tool with a handler that records every call."""

        async def handle_call(arguments: Mapping[str, Any], context: Context) -> Any:
            started = time()
            run_id, status, summary = str(arguments.get("run_id", "")), "cancelled", ""
            try:
                answer = await tool.run(arguments, context)
                run_id = run_id or str(answer.get("run_id", ""))
                run_status = answer.get("status")  # the state of the run after the call
                state = answer.get("state") or (run_status.get("state") if isinstance(run_status, Mapping) else "")
                status, summary = "success", str(state or "ok")
            except ToolError as error:
                status, summary = "failure", error.code.name
                raise
            except Exception as crash:
                status, summary = "failure", type(crash).__name__
                raise
            finally:
                result = (status, summary)
                record = journal_records.make_call_record(
                    tool.name, arguments, run_id=run_id, started=started, trace=context.trace, result=result
                )
                self.queue_call(record)
                if run_id:
                    self.queue_run(run_id)
            return answer

        return replace(tool, run=handle_call)


MESSAGE_TIMEOUT_SECONDS: Final = 10.0
"""Time limit for one message."""

MAX_REPLY_BYTES: Final = 1 << 16
"""Bytes of a reply that are read; only its status counts."""

MAX_BATCH_MESSAGES: Final = 50
"""Messages that are read from the outbox at once."""

SENDER_LEASE_SECONDS: Final = 30.0
"""Time that a process remains the sender without renewing its claim."""

RETRY_PAUSE_SECONDS: Final = (1.0, 2.0, 4.0, 15.0, 60.0)
"""Pauses before retrying an unavailable collector, longer each time."""

IDLE_PAUSE_SECONDS: Final = 1.0
"""Pause after an empty outbox."""


@dataclass(eq=False)
class TelemetrySender:
    """Sends messages from the outbox to their collectors."""

    ledger: TelemetryLedger
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secrets by the names that messages have for them."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    _owner: str = field(default_factory=lambda: secrets.token_hex(8))
    _failures: int = 0

    async def run(self) -> None:
        """Send all messages until cancelled."""
        while True:
            await self.flush()
            retry_pause = RETRY_PAUSE_SECONDS[min(self._failures, len(RETRY_PAUSE_SECONDS)) - 1]
            await self.sleep(retry_pause if self._failures else IDLE_PAUSE_SECONDS)

    async def flush(self) -> bool:
        """Send the waiting messages to all available collectors; return False if one is not."""
        try:
            collectors = await to_thread.run_sync(self._claim_collectors)
            if not collectors:
                return True
            async with HttpClient(timeout=MESSAGE_TIMEOUT_SECONDS, max_bytes=MAX_REPLY_BYTES) as client:
                flushed = [await self._flush_collector(client, collector) for collector in collectors]
        except (OSError, sqlite3.Error) as error:  # such as a full disk: the outbox is unchanged
            log.warning("telemetry.outbox error=%s", type(error).__name__)
            self._failures += 1
            return False
        self._failures = 0 if all(flushed) else self._failures + 1
        return all(flushed)

    def _claim_collectors(self) -> Sequence[str]:
        collectors = self.ledger.list_collectors()
        is_sender = collectors and self.ledger.claim_sender(self._owner, time(), SENDER_LEASE_SECONDS)
        return collectors if is_sender else ()

    async def _flush_collector(self, client: HttpClient, collector: str) -> bool:
        while waiting := await to_thread.run_sync(self.ledger.list_waiting, collector, MAX_BATCH_MESSAGES):
            for message in waiting:
                if not await self._send_message(client, collector, message):
                    return False
                await to_thread.run_sync(self.ledger.mark_sent, message)
        return True

    async def _send_message(self, client: HttpClient, collector: str, message: OutboxMessage) -> bool:
        """Send a message; return True if it arrived or was rejected for good."""
        url = collector.rstrip("/") + message.path
        token = self.tokens.get(message.token)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        try:
            reply = await client.send(message.method, url, message.body, headers)
        except RequestFailedError:
            return False
        if reply.status >= 500 or reply.status == 429:
            return False
        if reply.status >= 400:
            log.warning("telemetry.refused path=%s status=%d", message.path, reply.status)
        return True
