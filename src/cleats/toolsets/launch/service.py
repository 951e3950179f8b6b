"""What the launch tools do: arguments in, the engine asked, the answers of spec e out.

The engine and its store are made when the first call needs them, so that listing the tools touches
no file.
"""

import hashlib
import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Changed, Context
from cleats.settings import Settings, surroundings
from cleats.toolsets.launch.artifacts import compact
from cleats.toolsets.launch.events import Trace
from cleats.toolsets.launch.telemetry.ledger import Collector
from cleats.toolsets.launch.telemetry.watch import Watch

if TYPE_CHECKING:
    from cleats.toolsets.launch.drive.course import Caller
    from cleats.toolsets.launch.drive.driver import Engine
    from cleats.toolsets.launch.fleet.jobs import Jobs
    from cleats.toolsets.launch.reading import Artifact
    from cleats.toolsets.launch.store.port import Run

log = logging.getLogger(__name__)

Given = Mapping[str, Any]
Body = dict[str, Any]

RUN_ID: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")


class Launches:
    """The runs of one user."""

    def __init__(self, settings: Settings, *, background: bool = True) -> None:
        """Make the service; without `background` a run is only driven by calls that say so."""
        self._settings = settings
        self._background = background
        self._life: AsyncExitStack | None = None
        self._driving = False
        self._jobs: Jobs | None = None

    @cached_property
    def engine(self) -> "Engine":
        """The engine, over the store of the data folder."""
        from cleats.toolsets.launch.engine import engine  # noqa: PLC0415 - when a call needs it

        return engine(self._settings, lambda run, _events: self.watch.moved(run.run_id))

    @cached_property
    def watch(self) -> Watch:
        """The records of runs and calls, for those who watch many."""
        url, token = self._settings.launch_telemetry, self._settings.launch_telemetry_token
        return Watch(
            self._settings.data_dir / "launch",
            lambda: self.engine.store,
            Collector(url, token) if url else None,
            self._tokens,
        )

    def _tokens(self) -> Mapping[str, str]:
        from cleats.toolsets.launch.engine import secrets  # noqa: PLC0415 - as above

        return secrets(self._settings)

    @asynccontextmanager
    async def running(self, _changed: Changed) -> AsyncIterator[None]:
        """Drive runs in the background while the server lives."""
        try:
            async with self.watch.running(), AsyncExitStack() as life:
                self._life = life
                try:
                    yield
                finally:
                    self._life = None
        finally:
            # The last: records are made from the store until the watch has ended.
            if "engine" in self.__dict__:
                self.engine.store.close()

    async def start(self, given: Given, context: Context) -> Body:
        from cleats.toolsets.launch.config.normal import normalise  # noqa: PLC0415 - as above

        config = await to_thread.run_sync(normalise, given["run_config"], self._settings)
        run = await self._create(config, given, "", context)
        return {"run_id": run.run_id, "state": run.state.value}

    async def start_from_url(self, given: Given, context: Context) -> Body:
        from cleats.toolsets.launch.quickstart import deriving  # noqa: PLC0415 - as above

        request = _request("launch_start_run_from_product_url", given["url"])
        told = deriving.of_page(given["url"], self._settings)
        run = await self._known(given, request)
        if run is None:
            derived = await deriving.from_product_url(given["url"], self._settings, self._git_env)
            run = await self._derived(derived.given, given, request, context)
        return await self._started(run, told, context)

    async def start_from_repository(self, given: Given, context: Context) -> Body:
        from cleats.toolsets.launch.quickstart import deriving  # noqa: PLC0415 - as above

        url = given["github_repo_url"]
        request = _request("launch_start_run_from_github_repo_url", url)
        run = await self._known(given, request)
        if run is None:
            context.progress("Looking at the repository.", phase="discovery")
            derived = await deriving.from_repository_url(url, self._settings, self._git_env)
            run = await self._derived(derived.given, given, request, context)
        return await self._started(run, deriving.of_repository(run.config), context)

    async def status(self, given: Given, context: Context) -> Body:
        run_id = _run_id(given, context)
        return {"run_id": run_id, "status": await self.engine.status(run_id)}

    async def artifact(self, given: Given, context: Context) -> Body:
        run_id = _run_id(given, context)
        found = await self.read(run_id, given["artifact_name"])
        return {"run_id": run_id, "artifact": await to_thread.run_sync(found.as_json)}

    async def list(self, given: Given, _context: Context) -> Body:
        wanted = given.get("filter", {})
        found = await self.engine.list(
            product_slug=wanted.get("product_slug", ""),
            state=wanted.get("state", ""),
            limit=given["limit"] + 1,
            before=_number(given.get("cursor", "")),
        )
        page = found[: given["limit"]]
        body: Body = {
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
        if len(found) > len(page):
            body["next_cursor"] = str(page[-1].number)
        return body

    async def validate(self, given: Given, context: Context) -> Body:
        run_id = _run_id(given, context)
        report = await self.engine.validate(run_id, by=_caller(context))
        return {"run_id": run_id, "validation_report": report}

    async def fix_next(self, given: Given, context: Context) -> Body:
        run_id = _run_id(given, context)
        fixed = await self.engine.fix_next(run_id, by=_caller(context))
        return {
            "run_id": run_id,
            "fixed_issue_id": fixed.issue_id,
            "applied_patch_ids": list(fixed.patch_ids),
            "remaining_blockers": fixed.remaining,
            "validation_report": fixed.report,
        }

    async def resume(self, given: Given, context: Context) -> Body:
        run_id = _run_id(given, context)
        status = await self.engine.resume(run_id, by=_caller(context))
        return {"run_id": run_id, "status": status}

    async def cancel(self, given: Given, context: Context) -> Body:
        run_id = _run_id(given, context)
        await self.engine.cancel(run_id, by=_caller(context))
        return {"run_id": run_id, "cancelled": True, "state": "CANCELLED"}

    async def open_pr(self, given: Given, context: Context) -> Body:
        run_id = _run_id(given, context)
        made = await self.engine.open_pr(run_id, by=_caller(context))
        return {"run_id": run_id, **made}

    async def read(self, run_id: str, name: str) -> "Artifact":
        """An artifact of a run, or one of the documents that every run has.

        Raises:
            ToolError: RUN_NOT_FOUND; INVALID_INPUT with the names there are.
        """
        from cleats.toolsets.launch import reading  # noqa: PLC0415 - as above

        return await to_thread.run_sync(reading.artifact, self.engine, run_id, name)

    async def latest(self, count: int) -> "Sequence[Run]":
        """The newest runs."""

        def look() -> "Sequence[Run]":
            store = self.engine.store
            return [store.get(each.run_id) for each in store.list(limit=count)]

        return await to_thread.run_sync(look)

    @cached_property
    def _git_env(self) -> dict[str, str]:
        from cleats.toolsets.launch.source.git import kept  # noqa: PLC0415 - as above

        return kept(surroundings(self._settings))

    async def _known(self, given: Given, request: str) -> "Run | None":
        """The run that this very request has started before, by its key."""
        key = given.get("idempotency_key")
        return await self.engine.existing(key, request) if key else None

    async def _derived(
        self, config: Mapping[str, Any], given: Given, request: str, context: Context
    ) -> "Run":
        from cleats.toolsets.launch.config.normal import normalise  # noqa: PLC0415 - as above

        normal = await to_thread.run_sync(normalise, config, self._settings)
        return await self._create(normal, given, request, context)

    async def _create(
        self, config: Mapping[str, Any], given: Given, request: str, context: Context
    ) -> "Run":
        from cleats.toolsets.launch.config.normal import config_hash  # noqa: PLC0415 - as above
        from cleats.toolsets.launch.config.shown import shown_config  # noqa: PLC0415

        run, _ = await self.engine.create(
            config,
            config_hash=config_hash(config),
            shown_config=shown_config(config),
            key=given.get("idempotency_key", ""),
            request_hash=request,
            by=_caller(context),
        )
        await self._drive(run, context)
        return run

    async def _started(self, run: "Run", told: Mapping[str, Any], context: Context) -> Body:
        await self._drive(run, context)
        return {"run_id": run.run_id, "state": run.state.value, "derived_config": dict(told)}

    async def _drive(self, run: "Run", context: Context) -> None:
        """Let a run go on in the background, also one whose server was lost since it began."""
        context.note(run_id=run.run_id)
        if self._life is None or not self._background:
            return
        if self._settings.database_url:
            await self._ask_for_a_worker(run, self._life)
            return
        if not self._driving:
            self._driving = True
            await self._life.enter_async_context(self.engine.running())
        self.engine.drive_in_background(run, _caller(context))

    async def _ask_for_a_worker(self, run: "Run", life: AsyncExitStack) -> None:
        """Leave a run to the workers of the fleet; they find it themselves if this fails."""
        from cleats.toolsets.launch.drive.driver import goes_by_itself  # noqa: PLC0415 - as above
        from cleats.toolsets.launch.fleet.jobs import Jobs  # noqa: PLC0415

        if not goes_by_itself(run):
            return
        try:
            if self._jobs is None:
                jobs = Jobs(self._settings.database_url)
                await life.enter_async_context(jobs.open())
                self._jobs = jobs
            await self._jobs.defer(run.run_id)
        except OSError as error:
            log.warning("job.lost run=%s error=%s", run.run_id, type(error).__name__)


def _run_id(given: Given, context: Context) -> str:
    run_id: str = given["run_id"]
    if not RUN_ID.fullmatch(run_id):
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            f"{run_id[:80]!r} cannot be the id of a run",
            hint="launch_list_runs has the ids.",
            details={"field": "run_id", "pattern": f"^{RUN_ID.pattern}$"},
        )
    context.note(run_id=run_id)
    return run_id


def _number(cursor: str) -> int:
    if not cursor:
        return 0
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 18:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            "this cursor is none of ours",
            hint="Use next_cursor of the page before.",
            details={"field": "cursor"},
        )
    return int(cursor)


def _request(tool: str, address: str) -> str:
    """What identifies a request whose configuration has to be derived."""
    return hashlib.sha256(compact([tool, address.strip()]).encode()).hexdigest()


def _caller(context: Context) -> "Caller":
    from cleats.toolsets.launch.drive.course import Caller  # noqa: PLC0415 - as above

    def tell(message: str, done: float | None, total: float | None) -> None:
        context.progress(message, done=done, total=total)

    return Caller(Trace(*context.trace), tell, context.sampled)
