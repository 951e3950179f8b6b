"""The run engine: what the tools of launch can ask for.

Every method can be called at any time, from any number of processes on one store. A method that
drives a run takes its lease, waiting while another driver has it, and gives it back however the
call ends; a call that is withdrawn stops its step, and the run stays at its last record.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio
from anyio import to_thread
from opentelemetry.trace import Tracer

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.branch import Place
from cleats.runtime.process import GRACE
from cleats.runtime.telemetry import LocalTracer, discard
from cleats.toolsets.launch import disk
from cleats.toolsets.launch.drive import exports, records, steps
from cleats.toolsets.launch.drive.background import Background
from cleats.toolsets.launch.drive.child import Workers
from cleats.toolsets.launch.drive.course import NOBODY, Caller, Course, Means, Observe
from cleats.toolsets.launch.drive.leases import Leases, Pace
from cleats.toolsets.launch.drive.refusals import (
    cancelled,
    exhausted,
    illegal,
    need,
    refuse,
    taken_over,
)
from cleats.toolsets.launch.drive.steps import View
from cleats.toolsets.launch.drive.trail import driving
from cleats.toolsets.launch.events import NO_TRACE, Trace
from cleats.toolsets.launch.folder import RunFolder
from cleats.toolsets.launch.issues import BLOCKING
from cleats.toolsets.launch.snapshot import Snapshot, status_of
from cleats.toolsets.launch.states import STABLE, State
from cleats.toolsets.launch.store.port import LeaseLost, Listed, NewRun, Run, RunStore

REPORT = "validation_report.json"

CANCEL_PATIENCE = 6.0
"""Seconds that a cancel waits for our own worker to be gone; the call itself has ten."""


_BUSY = frozenset({State.LINKING, State.FIXING})
"""Where something is about to change the worktree."""


class _EndedMeanwhile(Exception):  # noqa: N818 - it is no error
    """Raised when the driver that was waited for has taken the run to its end."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """What one attempt at a fix came to."""

    issue_id: str | None
    """The issue that is gone now; None when it is still there."""
    patch_ids: tuple[str, ...]
    remaining: int
    """Issues that still keep the run from its request: blockers and errors."""
    report: Mapping[str, Any]


class Engine:
    """The runs of one store, and what can be done with them."""

    def __init__(
        self,
        store: RunStore,
        runs: Path,
        *,
        settings: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        grace: float = GRACE,
        modules: Mapping[str, str] = steps.MODULES,
        pace: Pace = Pace(),  # noqa: B008 - a frozen value
        observe: Observe = lambda _run, _events: None,
        tracer: Tracer | None = None,
    ) -> None:
        """Make an engine; nothing is started.

        Args:
            store: where the runs are kept.
            runs: the folder that holds the folders of the runs.
            settings: what the workers need to know; plain JSON.
            secrets: tokens by name, for the workers that publish or ask a model.
            env: the environment of the workers; ours when not given.
            grace: seconds between asking a worker to stop and killing it.
            modules: the module of each kind of step.
            pace: of the leases.
            observe: hears of every record; it must not raise.
            tracer: makes the spans of what is driven; nobody sees them when not given.
        """
        self.store = store
        self.runs = runs
        self._leases = Leases(store, pace)
        self._background = Background()
        self._observe = observe
        self._means = Means(
            store=store,
            runs=runs,
            workers=Workers(modules, env, grace),
            secrets=secrets or {},
            settings=settings or {},
            observe=observe,
            tracer=tracer or LocalTracer(discard),
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """What lives as long as the server: inside it, runs go on in the background."""
        return self._background.running()

    async def existing(self, key: str, request_hash: str) -> Run | None:
        """The run that was started with this key for the same request, if there is one."""
        run = await to_thread.run_sync(self.store.find, key)
        return run if run is not None and run.request_hash == request_hash else None

    async def create(
        self,
        config: Mapping[str, Any],
        *,
        config_hash: str,
        shown_config: Mapping[str, Any],
        key: str = "",
        request_hash: str = "",
        by: Caller = NOBODY,
    ) -> tuple[Run, bool]:
        """Create a run, or find the one that has its key; say whether it is new.

        Nothing is driven; see `drive_in_background`.

        Raises:
            ToolError: INVALID_INPUT, the key belongs to a run with another configuration.
        """
        new = NewRun(
            run_id=new_run_id(),
            product_slug=config["product_slug"],
            config=config,
            shown_config=shown_config,
            config_hash=config_hash,
            key=key,
            request_hash=request_hash,
        )
        sections = View(State.CREATED, {}, config).sections
        drafts = records.created(config_hash, new.product_slug, sections)
        run, made = await to_thread.run_sync(self.store.create, new, drafts, by.trace)
        if made:
            self._observe(run, await to_thread.run_sync(self.store.events, run.run_id))
        return run, made

    def drive_in_background(self, run: Run, by: Caller = NOBODY) -> bool:
        """Drive a run of mode `auto` to its first decision; False when nobody will."""
        if not goes_by_itself(run):
            return False
        caller = Caller(by.trace, sampled=by.sampled)
        return self._background.start(run.run_id, lambda: self._drive(run.run_id, caller))

    async def status(self, run_id: str) -> dict[str, Any]:
        """The RunStatus.

        Raises:
            ToolError: RUN_NOT_FOUND, as every method for one run.
        """
        return status_of(await self.snapshot(run_id))

    async def snapshot(self, run_id: str) -> Snapshot:
        """All that is known of a run."""
        return await to_thread.run_sync(self.store.snapshot, run_id)

    async def list(
        self, *, product_slug: str = "", state: str = "", limit: int = 50, before: int = 0
    ) -> "list[Listed]":
        """Runs, the newest first; `before` is the `number` of the last one seen."""

        def ask() -> "list[Listed]":
            return [
                *self.store.list(product_slug=product_slug, state=state, limit=limit, before=before)
            ]

        return await to_thread.run_sync(ask)

    async def validate(self, run_id: str, by: Caller = NOBODY) -> dict[str, Any]:
        """Look at the worktree again; return the report, which may well say no.

        Raises:
            ToolError: ILLEGAL_STATE, CANCELLED, or what the worker raised.
        """

        def look(run: Run) -> None:
            refuse(run, State.LINKING, ends=True)
            need(run, self._folder(run_id), "validate")

        async with self._course(run_id, look, by) as course:
            next_one = steps.validation(course.view)
            # What was interrupted is finished first, and mostly ends in a validation itself.
            await course.advance(lambda view: view.state not in _BUSY and view.report is not None)
            if next_one.step not in course.view.done:
                await course.do(next_one)
            report: dict[str, Any] = course.document(REPORT)
            return report

    async def fix_next(self, run_id: str, by: Caller = NOBODY) -> Fixed:
        """Try to fix one issue, and look at the worktree again.

        Raises:
            ToolError: ILLEGAL_STATE, CANCELLED, FIX_EXHAUSTED, or what a worker raised.
        """

        def look(run: Run) -> None:
            refuse(run, State.VALIDATING, only=True)
            need(run, self._folder(run_id), "fix")

        async with self._course(run_id, look, by) as course:
            if not course.view.fixable:
                raise illegal(course.run, "it has no report that is not ok", [State.VALIDATING])
            limit = course.run.config.get("max_fix_attempts", 3)
            if course.view.fixes >= limit:
                error = exhausted(limit)
                await course.fail(error)
                raise error
            return await self._fix(course)

    async def resume(self, run_id: str, by: Caller = NOBODY) -> dict[str, Any]:
        """Go on to the next place where a run may rest; return the RunStatus there.

        A run of mode `auto` goes on to its first decision. When another driver has the run, this
        waits for it, and goes on only if that one stopped half-way.

        Raises:
            ToolError: ILLEGAL_STATE, CANCELLED, or what a worker raised.
        """
        seen: list[State] = []

        def look(run: Run) -> None:
            if seen and run.state in {State.DONE, State.FAILED}:
                raise _EndedMeanwhile
            seen.append(run.state)
            refuse(run)

        with suppress(_EndedMeanwhile):
            async with self._course(run_id, look, by) as course:
                waited = seen[0] is not course.view.state
                if not (waited and course.view.state in STABLE):
                    await self._go(course)
        return await self.status(run_id)

    async def open_pr(self, run_id: str, by: Caller = NOBODY) -> dict[str, Any]:
        """Publish what was validated; return pr_url, branch and commit_sha.

        Raises:
            ToolError: ILLEGAL_STATE, CANCELLED, COMMIT_SERVICE_ERROR, ALLOWED_PATHS_VIOLATION.
        """

        def look(run: Run) -> None:
            refuse(run, State.READY_FOR_PR, only=True)
            need(run, self._folder(run_id), "commit")

        async with self._course(run_id, look, by) as course:
            report = course.view.report
            if report is None or not report["ok"]:
                raise illegal(course.run, "its last report is not ok", [State.READY_FOR_PR])
            await self._publish(course)
            facts = course.published()
            return {name: facts[name] for name in ("pr_url", "branch", "commit_sha")}

    async def cancel(self, run_id: str, by: Caller = NOBODY) -> None:
        """Cancel a run, whoever drives it. A cancelled run stays so.

        Our own worker is gone when this returns; one of another process is within a second.

        Raises:
            ToolError: ILLEGAL_STATE, the run is done or has failed.
        """
        run, events = await to_thread.run_sync(
            self.store.cancel, run_id, records.cancelled, by.trace
        )
        if events:
            self._observe(run, events)
        await self._leases.drop(run_id, CANCEL_PATIENCE)
        await to_thread.run_sync(exports.export, self.store, self._folder(run_id))

    def _folder(self, run_id: str) -> RunFolder:
        return RunFolder(self.runs / run_id)

    async def _drive(self, run_id: str, by: Caller) -> None:
        async with self._course(run_id, refuse, by) as course:
            await self._go(course)

    async def _go(self, course: Course) -> None:
        """Go on as far as the configuration says."""
        drive = course.run.config.get("drive", {})
        begun = course.view.state
        if drive.get("mode", "auto") == "stepwise":
            await course.advance(lambda view: view.state in STABLE and view.state is not begun)
            return
        await course.advance(lambda view: view.state is State.READY_FOR_PR)
        limit = course.run.config.get("max_fix_attempts", 3)
        while drive.get("auto_fix") and course.view.fixable and course.view.fixes < limit:
            try:
                await self._fix(course)
            except ToolError as error:
                if error.code is ErrorCode.FIX_EXHAUSTED:
                    break  # nothing that is left has a rule
                raise
        if drive.get("auto_pr") and course.view.state is State.READY_FOR_PR:
            await self._publish(course)

    async def _fix(self, course: Course) -> Fixed:
        await course.enter(State.FIXING)
        number = course.view.fixes + 1
        await course.advance(lambda view: view.state is not State.FIXING)
        await course.advance(lambda view: view.state is not State.VALIDATING)
        facts = course.view.done[f"fix:{number}"]
        applied = f"apply:fix:{number}" in course.view.done
        report = course.document(REPORT)
        left = [each for each in report["issues"] if each["severity"] in BLOCKING]
        issue_id = facts.get("issue_id")
        gone = applied and all(each["issue_id"] != issue_id for each in report["issues"])
        return Fixed(
            issue_id if gone else None,
            tuple(facts.get("patch_ids", ())) if applied else (),
            len(left),
            report,
        )

    async def _publish(self, course: Course) -> None:
        with course.trail.publication():
            while (work := steps.publication(course.view)) is not None:
                await course.do(work)
        await course.advance(lambda view: view.state is State.DONE)

    @asynccontextmanager
    async def _course(
        self, run_id: str, look: Callable[[Run], None], by: Caller
    ) -> AsyncIterator[Course]:
        """Take a run over, let the block drive it, and write its files at the end."""
        call = Place(*by.trace[:2], by.sampled) if by.trace.trace_id.strip("0") else None
        folder = self._folder(run_id)
        try:
            async with self._leases.hold(run_id, look) as held:
                journaled = NO_TRACE if call else await to_thread.run_sync(self._origin, run_id)
                with driving(self._means.tracer, run_id, call, journaled) as trail:
                    course = Course(self._means, held, by.tell, trail)
                    await course.load()
                    look(course.run)
                    try:
                        yield course
                    finally:
                        with anyio.CancelScope(shield=True):
                            await to_thread.run_sync(exports.export, self.store, folder)
        except OSError as error:
            raise (disk.trouble(error) or error) from None
        except LeaseLost:
            run = await to_thread.run_sync(self.store.get, run_id)
            raise (cancelled(run_id) if run.state is State.CANCELLED else taken_over(run)) from None

    def _origin(self, run_id: str) -> Trace:
        """The call that started a run, as its log has it."""
        first = self.store.events(run_id)[:1]
        return first[0].trace if first else NO_TRACE


def new_run_id(now: float | None = None) -> str:
    """A name for a run: when it began, and eight random digits."""
    moment = datetime.fromtimestamp(time.time() if now is None else now, UTC)
    return f"r_{moment:%Y-%m-%dT%H-%M-%SZ}_{token_hex(4)}"


def goes_by_itself(run: Run) -> bool:
    """Whether somebody drives a run without being asked for each step."""
    mode: str = run.config.get("drive", {}).get("mode", "auto")
    return mode == "auto"
