"""The run engine: the operations of the launch tools.

Every method can be called at any time, from any number of processes on one store. A method that
drives a run takes its lease, waiting while another driver has it, and releases it however the call
ends; a call that is withdrawn stops its step, and the run stays at its last record.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any

import anyio
from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.child_spans import SpanReference
from cleats.toolsets.launch.drive import pipeline, step_events
from cleats.toolsets.launch.drive.leases import BackgroundDriver, LeaseManager, LeaseTiming
from cleats.toolsets.launch.drive.pipeline import PipelineView, check_run_state, make_illegal_state_error
from cleats.toolsets.launch.drive.run_driver import NO_CALLER, Caller, DriverResources, RunDriver
from cleats.toolsets.launch.drive.spans import trace_drive
from cleats.toolsets.launch.runs import storage
from cleats.toolsets.launch.runs.events import NO_TRACE, EventDraft
from cleats.toolsets.launch.runs.issues import BLOCKING_SEVERITIES
from cleats.toolsets.launch.runs.snapshot import build_status
from cleats.toolsets.launch.runs.states import STABLE_STATES, RunState
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.store import run_files
from cleats.toolsets.launch.store.model import LeaseLost, Run

REPORT_NAME = "validation_report.json"

CANCEL_TIMEOUT_SECONDS = 6.0
"""Seconds that a cancel waits for a worker of this process to end; the call itself has ten."""


_BUSY_STATES = frozenset({RunState.LINKING, RunState.FIXING})
"""States in which a step is about to change the worktree."""


class _RunEnded(Exception):  # noqa: N818 - it is no error
    """Raised when the driver that a call waited for has taken the run to its end."""


class RunEngine:
    """The runs of one store, and the operations on them."""

    def __init__(self, resources: DriverResources, pace: LeaseTiming) -> None:
        """Create an engine; nothing is started."""
        self.store = resources.store
        self.runs = resources.runs
        self._leases = LeaseManager(resources.store, pace)
        self._background = BackgroundDriver()
        self._resources = resources

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the lifespan of the server: inside it, runs continue in the background."""
        return self._background.running()

    async def create(
        self,
        config: Mapping[str, Any],
        *,
        config_hash: str,
        shown_config: Mapping[str, Any],
        key: str = "",
        request_hash: str = "",
        caller: Caller = NO_CALLER,
    ) -> tuple[Run, bool]:
        """Create a run, or return the one that has its key; also return whether it is new.

        Nothing is driven; see `drive_in_background`.

        Raises:
            ToolError: INVALID_INPUT, the key belongs to a run with another configuration.
        """
        new = Run(
            run_id=make_run_id(),
            product_slug=config["product_slug"],
            config=config,
            shown_config=shown_config,
            config_hash=config_hash,
            key=key,
            request_hash=request_hash,
        )
        sections = PipelineView(RunState.CREATED, {}, config).sections
        payload = {"product_slug": new.product_slug, "config_hash": config_hash, "required_sections": sections}
        draft = EventDraft("RUN_CREATED", payload)
        run, is_new = await to_thread.run_sync(self.store.create, new, [draft], caller.trace)
        if is_new:
            self._resources.observe(run, await to_thread.run_sync(self.store.list_events, run.run_id))
        return run, is_new

    def drive_in_background(self, run: Run, caller: Caller = NO_CALLER) -> bool:
        """Drive a run of mode `auto` to its first decision; return False if it is not driven."""
        if not is_automatic(run):
            return False
        background_caller = Caller(caller.trace, sampled=caller.sampled)
        return self._background.start(run.run_id, lambda: self._drive_run(run.run_id, background_caller))

    async def get_status(self, run_id: str, _caller: Caller = NO_CALLER) -> dict[str, Any]:
        """Return the RunStatus.

        Raises:
            ToolError: RUN_NOT_FOUND, as every method for one run.
        """
        return build_status(await to_thread.run_sync(self.store.get_snapshot, run_id))

    async def validate(self, run_id: str, caller: Caller = NO_CALLER) -> dict[str, Any]:
        """Validate the worktree again and return the report, which may be negative.

        Raises:
            ToolError: ILLEGAL_STATE, CANCELLED, or the error of the worker.
        """
        check_run = self._make_check("validate", RunState.LINKING, allow_done=True)
        async with self._open_driver(run_id, check_run, caller) as driver:
            next_validation = pipeline.make_validation_work(driver.view)
            # An interrupted step is finished first, which mostly ends in a validation itself.
            await driver.advance(lambda view: view.state not in _BUSY_STATES and view.report is not None)
            if next_validation.step not in driver.view.done:
                await driver.run_step(next_validation)
            report: dict[str, Any] = driver.load_document(REPORT_NAME)
            return report

    async def fix_next(self, run_id: str, caller: Caller = NO_CALLER) -> dict[str, Any]:
        """Try to fix one issue, and validate the worktree again; return the outcome and the report.

        Raises:
            ToolError: ILLEGAL_STATE, CANCELLED, FIX_EXHAUSTED, or the error of a worker.
        """
        check_run = self._make_check("fix", RunState.VALIDATING, exact=True)
        async with self._open_driver(run_id, check_run, caller) as driver:
            if not driver.view.can_fix:
                raise make_illegal_state_error(driver.run, "its last report has no failures", [RunState.VALIDATING])
            limit = driver.run.config.get("max_fix_attempts", 3)
            if driver.view.fix_count >= limit:
                error = ToolError(
                    ErrorCode.FIX_EXHAUSTED,
                    f"all {limit} fix attempts of the run are used up",
                    hint="The run has failed; start another with a higher max_fix_attempts.",
                    details={"reason": "max_fix_attempts", "max_fix_attempts": limit},
                )
                await driver.fail_run(error)
                raise error
            return await self._run_fix(driver)

    async def resume(self, run_id: str, caller: Caller = NO_CALLER) -> dict[str, Any]:
        """Continue to the next state in which a run may rest, and return the RunStatus there.

        A run of mode `auto` continues to its first decision. If another driver has the run, this
        waits for it, and continues only if that one stopped half-way.

        Raises:
            ToolError: ILLEGAL_STATE, CANCELLED, or the error of a worker. A run that fails during the call raises the
                failure, whichever driver did the step.
        """
        seen_states: list[RunState] = []

        def check_run(run: Run) -> None:
            if seen_states and run.state in {RunState.DONE, RunState.FAILED}:
                raise _RunEnded
            seen_states.append(run.state)
            check_run_state(run)

        with suppress(_RunEnded):
            async with self._open_driver(run_id, check_run, caller) as driver:
                has_waited = seen_states[0] is not driver.view.state
                if not (has_waited and driver.view.state in STABLE_STATES):
                    await self._advance_run(driver)
        status = await self.get_status(run_id)
        if status["state"] == RunState.FAILED:
            failure = step_events.find_failure(await to_thread.run_sync(self.store.list_events, run_id))
            if failure.code is not ErrorCode.GATE_FAILED:  # which is answered by the report, with the status
                raise failure
        return status

    async def open_pr(self, run_id: str, caller: Caller = NO_CALLER) -> dict[str, Any]:
        """Publish the validated pages; return pr_url, branch and commit_sha.

        Raises:
            ToolError: ILLEGAL_STATE, CANCELLED, COMMIT_SERVICE_ERROR, ALLOWED_PATHS_VIOLATION.
        """
        check_run = self._make_check("commit", RunState.READY_FOR_PR, exact=True)
        async with self._open_driver(run_id, check_run, caller) as driver:
            report = driver.view.report
            if report is None or not report["ok"]:
                raise make_illegal_state_error(driver.run, "its last report is not ok", [RunState.READY_FOR_PR])
            await self._publish(driver)
            requests = [facts for step, facts in driver.view.done.items() if step.startswith("request")]
            return {name: requests[-1][name] for name in ("pr_url", "branch", "commit_sha")}

    async def cancel(self, run_id: str, caller: Caller = NO_CALLER) -> dict[str, Any]:
        """Cancel a run, whichever process drives it; return its state. Cancelling twice changes nothing.

        A worker of this process has ended when this returns; that of another process ends within a second.

        Raises:
            ToolError: ILLEGAL_STATE, the run is done or has failed.
        """
        run, events = await to_thread.run_sync(
            self.store.cancel, run_id, step_events.make_cancellation_events, caller.trace
        )
        if events:
            self._resources.observe(run, events)
        await self._leases.drop(run_id, CANCEL_TIMEOUT_SECONDS)
        await to_thread.run_sync(run_files.export_run, self.store, self._make_run_folder(run_id))
        return {"cancelled": True, "state": RunState.CANCELLED.value}

    def _make_run_folder(self, run_id: str) -> RunFolder:
        return RunFolder(self.runs / run_id)

    def _make_check(self, kind: str, state: RunState, **options: bool) -> Callable[[Run], None]:
        """Make the check that a run can do a kind of step: by its state and its checkouts."""

        def check_run(run: Run) -> None:
            check_run_state(run, state, **options)
            pipeline.check_checkouts(run, self._make_run_folder(run.run_id), kind)

        return check_run

    async def _drive_run(self, run_id: str, caller: Caller) -> None:
        async with self._open_driver(run_id, check_run_state, caller) as driver:
            await self._advance_run(driver)

    async def _advance_run(self, driver: RunDriver) -> None:
        """Continue as far as the configuration says."""
        drive = driver.run.config.get("drive", {})
        initial_state = driver.view.state
        if drive.get("mode", "auto") == "stepwise":
            await driver.advance(lambda view: view.state in STABLE_STATES and view.state is not initial_state)
            return
        await driver.advance(lambda view: view.state is RunState.READY_FOR_PR)
        limit = driver.run.config.get("max_fix_attempts", 3)
        while drive.get("auto_fix") and driver.view.can_fix and driver.view.fix_count < limit:
            try:
                await self._run_fix(driver)
            except ToolError as error:
                if error.code is ErrorCode.FIX_EXHAUSTED:
                    break  # no remaining issue has a rule
                raise
        if drive.get("auto_pr") and driver.view.state is RunState.READY_FOR_PR:
            await self._publish(driver)

    async def _run_fix(self, driver: RunDriver) -> dict[str, Any]:
        await driver.enter_state(RunState.FIXING)
        number = driver.view.fix_count + 1
        await driver.advance(lambda view: view.state is not RunState.FIXING)
        await driver.advance(lambda view: view.state is not RunState.VALIDATING)
        facts = driver.view.done[f"fix:{number}"]
        applied = f"apply:fix:{number}" in driver.view.done
        report = driver.load_document(REPORT_NAME)
        blocking_issues = [issue for issue in report["issues"] if issue["severity"] in BLOCKING_SEVERITIES]
        issue_id = facts.get("issue_id")
        is_resolved = applied and all(issue["issue_id"] != issue_id for issue in report["issues"])
        return {
            "fixed_issue_id": issue_id if is_resolved else None,
            "applied_patch_ids": facts.get("patch_ids", []) if applied else [],
            "remaining_blockers": len(blocking_issues),
            "validation_report": report,
        }

    async def _publish(self, driver: RunDriver) -> None:
        with driver.spans.open_publication():
            while (work := pipeline.find_publication_work(driver.view)) is not None:
                await driver.run_step(work)
        await driver.advance(lambda view: view.state is RunState.DONE)

    @asynccontextmanager
    async def _open_driver(
        self, run_id: str, check_run: Callable[[Run], None], caller: Caller
    ) -> AsyncIterator[RunDriver]:
        """Take a run over, let the block drive it, and export its files at the end."""
        caller_span = SpanReference(*caller.trace[:2], caller.sampled) if caller.trace.trace_id.strip("0") else None
        folder = self._make_run_folder(run_id)
        try:
            async with self._leases.hold(run_id, check_run) as held_lease:
                events = () if caller_span else await to_thread.run_sync(self.store.list_events, run_id)
                origin = next((event.trace for event in events), NO_TRACE)
                with trace_drive(self._resources.tracer, run_id, caller_span, origin) as spans:
                    driver = RunDriver(self._resources, held_lease, caller.report_progress, spans)
                    await driver.load()
                    check_run(driver.run)
                    try:
                        yield driver
                    finally:
                        with anyio.CancelScope(shield=True):
                            await to_thread.run_sync(run_files.export_run, self.store, folder)
        except OSError as error:
            raise (storage.wrap_os_error(error) or error) from None
        except LeaseLost:
            run = await to_thread.run_sync(self.store.get, run_id)
            if run.state is RunState.CANCELLED:
                raise pipeline.make_cancelled_error(run_id) from None
            raise ToolError(
                ErrorCode.ILLEGAL_STATE,
                f"another server has taken over {run_id}",
                hint="Call launch_resume to wait for it.",
                retryable=True,
                details={"state": run.state.value},
            ) from None


def make_run_id(now: float | None = None) -> str:
    """Make a run id: the time of creation and eight random digits."""
    moment = datetime.fromtimestamp(time.time() if now is None else now, UTC)
    return f"r_{moment:%Y-%m-%dT%H-%M-%SZ}_{token_hex(4)}"


def is_automatic(run: Run) -> bool:
    """Return whether a run is driven without a call for each step."""
    return bool(run.config.get("drive", {}).get("mode", "auto") == "auto")
