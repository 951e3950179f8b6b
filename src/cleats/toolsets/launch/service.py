"""The launch tools: each takes arguments, calls the engine and builds the answer of spec e.

The engine and its store are created when the first call needs them, so that listing the tools touches no file.
"""

import hashlib
import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, Handler, ListChangeCallback
from cleats.settings import Settings, get_environment
from cleats.system.git import filter_git_environment
from cleats.toolsets.launch.config.secrets import load_secrets, redact_config
from cleats.toolsets.launch.runs.artifacts import format_compact_json
from cleats.toolsets.launch.runs.events import TraceIds
from cleats.toolsets.launch.store import run_files
from cleats.toolsets.launch.telemetry.ledger import TelemetryCollector
from cleats.toolsets.launch.telemetry.recorder import TelemetryRecorder

if TYPE_CHECKING:
    from cleats.toolsets.launch.drive.engine import RunEngine
    from cleats.toolsets.launch.drive.run_driver import Caller
    from cleats.toolsets.launch.fleet import RunQueue
    from cleats.toolsets.launch.store.model import Run

log = logging.getLogger(__name__)

ToolArguments = Mapping[str, Any]
AnswerBody = dict[str, Any]

RUN_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")


class LaunchService:
    """The runs of one user."""

    def __init__(self, settings: Settings, *, background: bool = True) -> None:
        """Create the service; without `background`, only calls drive a run."""
        self._settings = settings
        self._background = background
        self._exit_stack: AsyncExitStack | None = None
        self._engine_running = False
        self._queue: RunQueue | None = None

    @cached_property
    def engine(self) -> "RunEngine":
        """The engine, with the store in the data folder."""
        from cleats.toolsets.launch.setup import build_engine  # noqa: PLC0415 - when a call needs it

        return build_engine(self._settings, lambda run, _events: self.recorder.queue_run(run.run_id))

    @cached_property
    def recorder(self) -> TelemetryRecorder:
        """The recorder of telemetry about runs and calls."""
        url, token = self._settings.launch.telemetry, self._settings.launch.telemetry_token
        return TelemetryRecorder(
            self._settings.data_dir / "launch",
            lambda: self.engine.store,
            TelemetryCollector(url, token) if url else None,
            partial(load_secrets, self._settings),
        )

    @asynccontextmanager
    async def running(self, _changed: ListChangeCallback) -> AsyncIterator[None]:
        """Drive runs in the background while the server lives."""
        try:
            async with self.recorder.running(), AsyncExitStack() as exit_stack:
                self._exit_stack = exit_stack
                try:
                    yield
                finally:
                    self._exit_stack = None
        finally:
            # Last: records are derived from the store until the recorder has ended.
            if "engine" in self.__dict__:
                self.engine.store.close()

    async def start(self, arguments: ToolArguments, context: Context) -> AnswerBody:
        run = await self._create_run(arguments["run_config"], arguments, "", context)
        return {"run_id": run.run_id, "state": run.state.value}

    async def start_from_url(self, arguments: ToolArguments, context: Context) -> AnswerBody:
        from cleats.toolsets.launch.quickstart import derive  # noqa: PLC0415 - as above

        url = arguments["url"]
        request_hash = _hash_request("launch_start_run_from_product_url", url)
        derived_config = derive.describe_page_config(url, self._settings)
        run = await self._find_existing(arguments, request_hash, context)
        if run is None:
            config = await derive.derive_from_product_url(url, self._settings, self.git_env)
            run = await self._create_run(config, arguments, request_hash, context)
        return {"run_id": run.run_id, "state": run.state.value, "derived_config": derived_config}

    async def start_from_repository(self, arguments: ToolArguments, context: Context) -> AnswerBody:
        from cleats.toolsets.launch.quickstart import derive  # noqa: PLC0415 - as above

        url = arguments["github_repo_url"]
        request_hash = _hash_request("launch_start_run_from_github_repo_url", url)
        run = await self._find_existing(arguments, request_hash, context)
        if run is None:
            context.progress("Looking at the repository.", phase="discovery")
            config = await derive.derive_from_repository_url(url, self._settings, self.git_env)
            run = await self._create_run(config, arguments, request_hash, context)
        derived_config = {name: run.config[name] for name in derive.REPORTED_FIELDS}
        return {"run_id": run.run_id, "state": run.state.value, "derived_config": derived_config}

    async def get_artifact(self, arguments: ToolArguments, context: Context) -> AnswerBody:
        run_id = _read_run_id(arguments, context)
        run_artifact = await self.read_artifact(run_id, arguments["artifact_name"])
        return {"run_id": run_id, "artifact": await to_thread.run_sync(run_artifact.as_json)}

    async def list_runs(self, arguments: ToolArguments, _context: Context) -> AnswerBody:
        filters = arguments.get("filter", {})
        options = {
            "product_slug": filters.get("product_slug", ""),
            "state": filters.get("state", ""),
            "limit": arguments["limit"] + 1,
            "before": _parse_cursor(arguments.get("cursor", "")),
        }
        runs = await to_thread.run_sync(partial(self.engine.store.list_runs, **options))
        page = runs[: arguments["limit"]]
        body: AnswerBody = {
            "runs": [
                {
                    "run_id": run.run_id,
                    "product_slug": run.product_slug,
                    "state": run.state.value,
                    "started_at": run.started_at,
                    "finished_at": run.finished_at or None,
                }
                for run in page
            ]
        }
        if len(runs) > len(page):
            body["next_cursor"] = str(page[-1].number)
        return body

    def make_run_handler(self, method: str, field: str = "") -> Handler:
        """Return the handler of a tool for one run: a method of the engine, answered under a field or as it is."""

        async def handle_call(arguments: ToolArguments, context: Context) -> AnswerBody:
            run_id = _read_run_id(arguments, context)
            result = await getattr(self.engine, method)(run_id, _make_caller(context))
            return {"run_id": run_id, **({field: result} if field else result)}

        return handle_call

    async def read_artifact(self, run_id: str, name: str) -> run_files.RunArtifact:
        """Return an artifact of a run, or one of the documents that every run has.

        Raises:
            ToolError: RUN_NOT_FOUND; INVALID_INPUT with the existing names.
        """
        return await to_thread.run_sync(run_files.read_artifact, self.engine.store, self.engine.runs, run_id, name)

    async def list_latest(self, count: int) -> "Sequence[Run]":
        """Return the newest runs."""

        def load_runs() -> "Sequence[Run]":
            store = self.engine.store
            return [store.get(summary.run_id) for summary in store.list_runs(limit=count)]

        return await to_thread.run_sync(load_runs)

    @cached_property
    def git_env(self) -> dict[str, str]:
        """The environment of git commands."""
        return filter_git_environment(get_environment(self._settings))

    @cached_property
    def worker_settings(self) -> dict[str, Any]:
        """The settings that workers need."""
        from cleats.toolsets.launch.setup import build_worker_settings  # noqa: PLC0415 - as above

        return build_worker_settings(self._settings)

    async def _create_run(
        self, raw_config: Mapping[str, Any], arguments: ToolArguments, request_hash: str, context: Context
    ) -> "Run":
        from cleats.toolsets.launch.config.normalise import hash_config, normalise_config  # noqa: PLC0415 - as above

        config = await to_thread.run_sync(normalise_config, raw_config, self._settings)
        run, _ = await self.engine.create(
            config,
            config_hash=hash_config(config),
            shown_config=redact_config(config),
            key=arguments.get("idempotency_key", ""),
            request_hash=request_hash,
            caller=_make_caller(context),
        )
        await self._drive_run(run, context)
        return run

    async def _find_existing(self, arguments: ToolArguments, request_hash: str, context: Context) -> "Run | None":
        """Return the run that was started with the same key for the same request, and drive it."""
        key = arguments.get("idempotency_key", "")
        run = await to_thread.run_sync(self.engine.store.find_by_key, key) if key else None
        if run is None or run.request_hash != request_hash:
            return None
        await self._drive_run(run, context)
        return run

    async def _drive_run(self, run: "Run", context: Context) -> None:
        """Continue a run in the background, even if the server that started it was lost."""
        context.note(run_id=run.run_id)
        if self._exit_stack is None or not self._background:
            return
        if self._settings.database_url:
            await self._enqueue_run(run, self._exit_stack)
            return
        if not self._engine_running:
            self._engine_running = True
            await self._exit_stack.enter_async_context(self.engine.running())
        self.engine.drive_in_background(run, _make_caller(context))

    async def _enqueue_run(self, run: "Run", exit_stack: AsyncExitStack) -> None:
        """Leave a run to the workers of the fleet; they find it themselves if this fails."""
        from cleats.toolsets.launch.drive.engine import is_automatic  # noqa: PLC0415 - as above
        from cleats.toolsets.launch.fleet import RunQueue  # noqa: PLC0415

        if not is_automatic(run):
            return
        try:
            if self._queue is None:
                queue = RunQueue(self._settings.database_url)
                await exit_stack.enter_async_context(queue.open())
                self._queue = queue
            await self._queue.defer(run.run_id)
        except OSError as error:
            log.warning("job.lost run=%s error=%s", run.run_id, type(error).__name__)


def _read_run_id(arguments: ToolArguments, context: Context) -> str:
    run_id: str = arguments["run_id"]
    if not RUN_ID_PATTERN.fullmatch(run_id):
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            f"{run_id[:80]!r} is not a valid run id",
            hint="launch_list_runs lists the ids.",
            details={"field": "run_id", "pattern": f"^{RUN_ID_PATTERN.pattern}$"},
        )
    context.note(run_id=run_id)
    return run_id


def _parse_cursor(cursor: str) -> int:
    if not cursor:
        return 0
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 18:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            "Invalid cursor.",
            hint="Use next_cursor of the previous page.",
            details={"field": "cursor"},
        )
    return int(cursor)


def _hash_request(tool: str, url: str) -> str:
    """Return the hash that identifies a request whose configuration has to be derived."""
    return hashlib.sha256(format_compact_json([tool, url.strip()]).encode()).hexdigest()


def _make_caller(context: Context) -> "Caller":
    from cleats.toolsets.launch.drive.run_driver import Caller  # noqa: PLC0415 - as above

    def report_progress(message: str, done: float | None, total: float | None) -> None:
        context.progress(message, done=done, total=total)

    return Caller(TraceIds(*context.trace), report_progress, context.sampled)
