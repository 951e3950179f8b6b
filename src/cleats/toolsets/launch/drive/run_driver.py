"""The driver of one run under a lease: each step is recorded before the next one begins."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from opentelemetry.trace import Tracer

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.child_spans import WorkSpan
from cleats.runtime.telemetry import LocalTracer, discard_spans
from cleats.toolsets.launch.config.secrets import select_step_secrets
from cleats.toolsets.launch.drive import pipeline, step_events
from cleats.toolsets.launch.drive.leases import HeldLease
from cleats.toolsets.launch.drive.pipeline import PipelineView, StepWork, check_checkouts
from cleats.toolsets.launch.drive.spans import DriveSpans, get_trace_ids
from cleats.toolsets.launch.drive.step_events import WorkItem
from cleats.toolsets.launch.runs.events import NO_TRACE, EventDraft, RunEvent, TraceIds
from cleats.toolsets.launch.runs.job import ProgressCallback, StepResult, WorkerError, WorkerJob, WorkerLauncher
from cleats.toolsets.launch.runs.states import REWIND_TARGETS, RunState
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.store.model import RecordedStep, Run, make_state_event
from cleats.toolsets.launch.store.run_store import RunStore

log = logging.getLogger(__name__)

T = TypeVar("T")

REFUSAL_CODES = frozenset({ErrorCode.ILLEGAL_STATE, ErrorCode.FIX_EXHAUSTED})
"""Errors of a worker that has nothing to do. Nothing is wrong with the run."""

OPERATOR_FIXABLE_CODES = frozenset({ErrorCode.TOOLCHAIN_MISSING, ErrorCode.COMMIT_SERVICE_ERROR})
"""Errors that an operator can correct by installing a tool or providing another token: the run
waits, although an immediate retry would not help."""

PATCH_CONFLICT_CODE = "LINKER_PATCHER_CONFLICT_UNRESOLVABLE"

DEFAULT_PATCH_ATTEMPTS = 5
"""Attempts to plan patches for a worktree that keeps changing, unless the run sets a limit."""

RecordObserver = Callable[[Run, Sequence[RunEvent]], None]
"""Called for every record, after it is on the disk. It must not raise."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller that a run is driven for: its trace, and a callback for progress."""

    trace: TraceIds = NO_TRACE
    report_progress: ProgressCallback = lambda _message, _done, _total: None
    sampled: bool = True


NO_CALLER = Caller()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverResources:
    """The resources that all run drivers share."""

    store: RunStore
    runs: Path
    """The folder that holds the folders of the runs."""
    workers: WorkerLauncher
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Tokens by name, for the workers that publish or call a model."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the workers; plain JSON."""
    observe: RecordObserver = lambda _run, _events: None
    tracer: Tracer = field(default_factory=lambda: LocalTracer(discard_spans))


class RunDriver:
    """The driver of a run. It is created under a lease and unusable without it."""

    def __init__(
        self, resources: DriverResources, held_lease: HeldLease, report_progress: ProgressCallback, spans: DriveSpans
    ) -> None:
        self.spans = spans
        self._resources = resources
        self._held_lease = held_lease
        self._report_progress = report_progress
        self.run: Run
        self.view: PipelineView
        self._steps: list[RecordedStep] = []

    async def load(self) -> None:
        """Load the run, after verifying its log.

        Raises:
            BrokenChainError: the log was changed.
        """
        store, run_id = self._resources.store, self._held_lease.lease.run_id
        if not await to_thread.run_sync(store.verify, run_id):
            log.warning("snapshot.rebuilt run=%s", run_id)
            await to_thread.run_sync(store.rebuild_snapshot, self._held_lease.lease)
        self._steps = list(await to_thread.run_sync(store.list_steps, run_id))
        self._update_view(await to_thread.run_sync(store.get, run_id))
        self.folder.root.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self._resources.runs / self.run.run_id)

    async def advance(self, is_reached: Callable[[PipelineView], bool]) -> None:
        """Continue until nothing is left to do or `is_reached` holds; check before each step.

        Raises:
            ToolError: a step failed; the failure is recorded.
            LeaseLost: the run was cancelled or taken over.
        """
        while not is_reached(self.view):
            match pipeline.find_next_action(self.view):
                case None:
                    return
                case RunState() as state:
                    await self.enter_state(state)
                case StepWork() as work:
                    await self.run_step(work)

    async def enter_state(self, state: RunState, *drafts: EventDraft) -> None:
        """Change the state of the run; `drafts` are recorded before the change."""
        completion = [EventDraft("RUN_COMPLETED", {})] if state is RunState.DONE else []
        await self._record_events([*drafts, *completion, make_state_event(self.view.state, state)])

    async def fail_run(self, error: ToolError) -> None:
        """End the run as failed."""
        await self._record_events(step_events.make_run_failure_events(self.view.state, error))

    async def run_step(self, work: StepWork) -> None:
        """Run a step and record it, or record its failure.

        Raises:
            ToolError: the step failed.
            LeaseLost: the run was cancelled or taken over; nothing is recorded.
        """
        item = WorkItem.make_next(self.run.snapshot, work)
        with self.spans.open_step(work, item) as span:
            await self._record_events(step_events.make_start_events(self.run.snapshot, work, item), get_trace_ids(span))
            started_at = monotonic()
            try:
                async with self._held_lease.working():
                    result = await self._run_within_budget(self._run_worker(work, item))
                documents = await to_thread.run_sync(self._load_documents, work, result)
            except ToolError as error:
                root = str(self.folder.root)  # a path of this machine
                error.message = error.message.replace(f"{root}/", "").replace(root, "the run's folder")
                await self._record_failure(work, item, error, span)
                return
            drafts = step_events.make_finish_events(
                self.run.snapshot, self.view, work, item, result, documents=documents
            )
            drafts = self.spans.add_worker_spans(span, drafts)
            recorded_step = RecordedStep(work.step, result.facts, monotonic() - started_at)
            await self._record_events(drafts, get_trace_ids(span), recorded_step)

    def load_document(self, name: str) -> Any:
        """Load an artifact of the run as a document."""
        return json.loads(self.folder.get_object(self.run.snapshot["artifacts_index"][name]["sha256"]))

    async def _run_worker(self, work: StepWork, item: WorkItem) -> StepResult:
        check_checkouts(self.run, self.folder, work.kind.name)
        index = self.run.snapshot["artifacts_index"]
        job = WorkerJob(
            run_id=self.run.run_id,
            step=work.step,
            worker=work.kind.worker,
            scope=work.scope,
            attempt=item.attempt,
            config=self.run.config,
            root=self.folder.root,
            inputs={name: entry["sha256"] for name, entry in index.items()},
            facts=dict(self.view.done),
            secrets=select_step_secrets(work.kind.name, self.run.config, self._resources.secrets),
            settings=self._resources.settings,
        )
        self._report_progress(f"{work.kind.worker} {work.step}", None, None)
        return await self._resources.workers.run(work.kind.name, job, self._report_progress)

    async def _run_within_budget(self, work: Awaitable[T]) -> T:
        limit = self.run.config.get("budgets", {}).get("max_runtime_s")
        if limit is None:
            return await work
        remaining_seconds = limit - sum(step.seconds for step in self._steps)
        with anyio.move_on_after(max(remaining_seconds, 0.001)):
            return await work
        raise ToolError(
            ErrorCode.TOOL_TIMEOUT,
            f"the run has used up its {limit} s",
            hint="Start a run with a larger budgets.max_runtime_s.",
            retryable=False,
            details={"budget": "max_runtime_s", "limit": limit},
        )

    def _load_documents(self, work: StepWork, result: StepResult) -> dict[str, Any]:
        """Load the documents that the record of a step depends on; only a validation needs any."""
        if work.kind.name != "validate":
            return {}
        report = self.folder.get_object(result.artifacts["validation_report.json"])
        documents = {"report": json.loads(report), "plan": self.load_document("page_plan.json")}
        if self.view.unjudged_fix is not None:
            documents["before"] = self.load_document("validation_report.json")
        return documents

    async def _record_failure(self, work: StepWork, item: WorkItem, error: ToolError, span: WorkSpan) -> None:
        """Record a failure, and raise it unless the run can continue."""
        span.error = error.code.name
        drafts: list[EventDraft] = []
        if isinstance(error, WorkerError):
            artifact_events = step_events.make_artifact_events(work, error.artifacts)
            drafts = [*self.spans.add_worker_spans(span, error.events), *artifact_events]
        drafts.append(step_events.make_item_failure_event(item.work_item_id, error))
        details = error.details if isinstance(error.details, Mapping) else {}
        is_patch_conflict = work.kind.name == "apply" and details.get("error_code") == PATCH_CONFLICT_CODE
        max_attempts = self.run.config.get("budgets", {}).get("max_patch_attempts", DEFAULT_PATCH_ATTEMPTS)
        rewind_count = sum(step.startswith("rewind") for step in self.view.done)
        if is_patch_conflict and rewind_count + 1 < int(max_attempts):
            await self._rewind(work, drafts, get_trace_ids(span))
            return
        if error.code in REFUSAL_CODES:
            if self.view.state is RunState.FIXING:
                drafts.append(make_state_event(RunState.FIXING, RunState.VALIDATING))
        else:
            drafts += step_events.make_failure_issue_events(self.run.snapshot, work, error)
            is_permanent = not error.retryable and error.code not in OPERATOR_FIXABLE_CODES
            if is_permanent and self.view.state not in pipeline.PUBLISHED_STATES:
                drafts += step_events.make_run_failure_events(self.view.state, error)
        await self._record_events(drafts, get_trace_ids(span))
        raise error

    async def _rewind(self, work: StepWork, drafts: Sequence[EventDraft], span: TraceIds) -> None:
        """Return to the state in which patches were planned: the worktree has changed since."""
        target = REWIND_TARGETS[self.view.state]
        payload = {"from_state": self.view.state.value, "to_state": target.value, "step": work.step}
        await self._record_events(
            [*drafts, EventDraft("RESUME_REWIND", payload), make_state_event(self.view.state, target)],
            span,
            RecordedStep(pipeline.make_rewind_step(self.view), payload, 0.0),
        )

    async def _record_events(
        self, drafts: Sequence[EventDraft], trace: TraceIds | None = None, step: RecordedStep | None = None
    ) -> None:
        lease = self._held_lease.lease
        write = partial(self._resources.store.record, lease, drafts, trace or self.spans.trace, step=step)
        run, events = await to_thread.run_sync(write)
        if step is not None:
            self._steps.append(step)
        self._update_view(run)
        self._resources.observe(run, events)

    def _update_view(self, run: Run) -> None:
        self.run = run
        self.view = PipelineView(run.state, {step.step: step.output for step in self._steps}, run.config)
