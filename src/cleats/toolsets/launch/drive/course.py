"""One run under a lease: its steps, one after the other, each recorded before the next begins."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from opentelemetry.trace import Tracer

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.branch import Branch
from cleats.toolsets.launch.config.tokens import granted
from cleats.toolsets.launch.drive import records, steps
from cleats.toolsets.launch.drive.child import Tell, WorkerError, Workers
from cleats.toolsets.launch.drive.leases import Held
from cleats.toolsets.launch.drive.records import Item, Result
from cleats.toolsets.launch.drive.refusals import need
from cleats.toolsets.launch.drive.steps import View, Work
from cleats.toolsets.launch.drive.trail import Trail, ids
from cleats.toolsets.launch.events import NO_TRACE, Draft, Event, Trace
from cleats.toolsets.launch.folder import RunFolder
from cleats.toolsets.launch.states import REWINDS, State
from cleats.toolsets.launch.store.journal import to_state
from cleats.toolsets.launch.store.port import Run, RunStore, Step
from cleats.toolsets.launch.workers.job import Job

log = logging.getLogger(__name__)

T = TypeVar("T")

REFUSALS = frozenset({ErrorCode.ILLEGAL_STATE, ErrorCode.FIX_EXHAUSTED})
"""What a worker says when it has nothing to do. Nothing is wrong with the run."""

MENDABLE = frozenset({ErrorCode.TOOLCHAIN_MISSING, ErrorCode.COMMIT_SERVICE_ERROR})
"""What an operator can put right, by installing a tool or giving another token: the run waits,
though trying again at once would not help."""

PUBLISHED = frozenset({State.PR_OPENED, State.DONE})
"""Where a run has reached its end: a later look at its worktree that fails takes nothing back."""

CONFLICT = "LINKER_PATCHER_CONFLICT_UNRESOLVABLE"

PATCH_ATTEMPTS = 5
"""How often patches are planned for a worktree that keeps changing, when the run does not say."""

Observe = Callable[[Run, Sequence[Event]], None]
"""Hears of every record, after it is on the disk. It must not raise."""


def _silent(_message: str, _done: float | None, _total: float | None) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf something is done, and how to tell how far it is."""

    trace: Trace = NO_TRACE
    tell: Tell = _silent
    sampled: bool = True


NOBODY = Caller()


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What every course has to its use."""

    store: RunStore
    runs: Path
    workers: Workers
    secrets: Mapping[str, str]
    settings: Mapping[str, Any]
    observe: Observe
    tracer: Tracer


class Course:
    """A run on its way. Made under a lease, and of no use without it."""

    def __init__(self, means: Means, held: Held, tell: Tell, trail: Trail) -> None:
        self.trail = trail
        self._means = means
        self._held = held
        self._tell = tell
        self.run: Run
        self.view: View
        self._steps: list[Step] = []

    async def load(self) -> None:
        """Read the run, after making sure that its log can be trusted.

        Raises:
            BrokenChainError: it cannot.
        """
        store, run_id = self._means.store, self._held.lease.run_id
        if not await to_thread.run_sync(store.verify, run_id):
            log.warning("snapshot.rebuilt run=%s", run_id)
            await to_thread.run_sync(store.rebuild, self._held.lease)
        self._steps = list(await to_thread.run_sync(store.steps, run_id))
        self._see(await to_thread.run_sync(store.get, run_id))
        self.folder.root.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self._means.runs / self.run.run_id)

    async def advance(self, until: Callable[[View], bool]) -> None:
        """Go on until there is nothing to do, or a place is reached; check before each step.

        Raises:
            ToolError: a step failed; what it leaves is recorded.
            LeaseLost: the run was cancelled or taken over.
        """
        while not until(self.view):
            match steps.pending(self.view):
                case None:
                    return
                case State() as state:
                    await self.enter(state)
                case Work() as work:
                    await self.do(work)

    async def enter(self, state: State, *drafts: Draft) -> None:
        """Change the state; `drafts` come before."""
        end = [Draft("RUN_COMPLETED", {})] if state is State.DONE else []
        await self._record([*drafts, *end, to_state(self.view.state, state)])

    async def fail(self, error: ToolError) -> None:
        """End the run."""
        await self._record(records.doomed(self.view.state, error))

    async def do(self, work: Work) -> None:
        """Do a step and record it, or record that it failed.

        Raises:
            ToolError: it failed.
            LeaseLost: the run was cancelled or taken over; nothing is recorded.
        """
        item = Item.next(self.run.snapshot, work)
        with self.trail.step(work, item) as span:
            await self._do(work, item, span)

    async def _do(self, work: Work, item: Item, span: Branch) -> None:
        await self._record(records.started(self.run.snapshot, work, item), ids(span))
        began = monotonic()
        try:
            async with self._held.working():
                result = await self._within_budget(self._work(work, item))
            documents = await to_thread.run_sync(self._documents, work, result)
        except ToolError as error:
            await self._failed(work, item, _shown(error, self.folder.root), span)
            return
        drafts = records.finished(
            self.run.snapshot, self.view, work, item, result, documents=documents
        )
        drafts = self.trail.told(span, drafts)
        await self._record(drafts, ids(span), Step(work.step, result.facts, monotonic() - began))

    def document(self, name: str) -> Any:
        """An artifact of the run as a document."""
        return json.loads(self.folder.get(self.run.snapshot["artifacts_index"][name]["sha256"]))

    def published(self) -> Mapping[str, Any]:
        """What the last request came to."""
        last = [facts for step, facts in self.view.done.items() if step.startswith("request")]
        return last[-1]

    async def _work(self, work: Work, item: Item) -> Result:
        need(self.run, self.folder, work.kind.name)
        index = self.run.snapshot["artifacts_index"]
        job = Job(
            run_id=self.run.run_id,
            step=work.step,
            worker=work.kind.worker,
            scope=work.scope,
            attempt=item.attempt,
            config=self.run.config,
            root=self.folder.root,
            inputs={name: entry["sha256"] for name, entry in index.items()},
            facts=dict(self.view.done),
            secrets=granted(work.kind.name, self.run.config, self._means.secrets),
            settings=self._means.settings,
        )
        self._tell(f"{work.kind.worker} {work.step}", None, None)
        return await self._means.workers.run(work.kind.name, job, self._tell)

    async def _within_budget(self, work: Awaitable[T]) -> T:
        limit = self.run.config.get("budgets", {}).get("max_runtime_s")
        if limit is None:
            return await work
        left = limit - sum(step.seconds for step in self._steps)
        with anyio.move_on_after(max(left, 0.001)):
            return await work
        raise ToolError(
            ErrorCode.TOOL_TIMEOUT,
            f"the run has used up its {limit} s",
            hint="Start a run with a larger budgets.max_runtime_s.",
            retryable=False,
            details={"budget": "max_runtime_s", "limit": limit},
        )

    def _documents(self, work: Work, result: Result) -> dict[str, Any]:
        """What a record has to look into: only that of a validation does."""
        if work.kind.name != "validate":
            return {}
        report = self.folder.get(result.artifacts["validation_report.json"])
        documents = {"report": json.loads(report), "plan": self.document("page_plan.json")}
        if self.view.fix_to_judge is not None:
            documents["before"] = self.document("validation_report.json")
        return documents

    async def _failed(self, work: Work, item: Item, error: ToolError, span: Branch) -> None:
        """Record a failure, and pass it on unless the run goes on all the same."""
        span.error = error.code.name
        before: list[Draft] = []
        if isinstance(error, WorkerError):
            before = self.trail.told(span, error.events) + records.written(work, error.artifacts)
        gone = Draft(
            "WORK_ITEM_FAILED", {"work_item_id": item.work_item_id, "error": records.told(error)}
        )
        if _conflicts(work, error) and self._may_plan_again():
            await self._rewind(work, [*before, gone], ids(span))
            return
        if error.code in REFUSALS:
            back = self.view.state is State.FIXING
            moved = [to_state(State.FIXING, State.VALIDATING)] if back else []
            await self._record([*before, gone, *moved], ids(span))
            raise error
        drafts = [*before, *records.failed(self.run.snapshot, work, item, error)]
        lasting = not error.retryable and error.code not in MENDABLE
        if lasting and self.view.state not in PUBLISHED:
            drafts += records.doomed(self.view.state, error)
        await self._record(drafts, ids(span))
        raise error

    async def _rewind(self, work: Work, drafts: Sequence[Draft], span: Trace) -> None:
        """Go back to where the patches were planned: the worktree has changed since."""
        back = REWINDS[self.view.state]
        payload = {"from_state": self.view.state.value, "to_state": back.value, "step": work.step}
        await self._record(
            [*drafts, Draft("RESUME_REWIND", payload), to_state(self.view.state, back)],
            span,
            Step(steps.rewinding(self.view), payload, 0.0),
        )

    def _may_plan_again(self) -> bool:
        most = self.run.config.get("budgets", {}).get("max_patch_attempts", PATCH_ATTEMPTS)
        return sum(step.startswith("rewind") for step in self.view.done) + 1 < int(most)

    async def _record(
        self, drafts: Sequence[Draft], trace: Trace | None = None, step: Step | None = None
    ) -> None:
        def write() -> tuple[Run, Sequence[Event]]:
            store, lease = self._means.store, self._held.lease
            return store.record(lease, drafts, trace or self.trail.trace, step=step)

        run, events = await to_thread.run_sync(write)
        if step is not None:
            self._steps.append(step)
        self._see(run)
        self._means.observe(run, events)

    def _see(self, run: Run) -> None:
        self.run = run
        self.view = View(run.state, {each.step: each.output for each in self._steps}, run.config)


def _conflicts(work: Work, error: ToolError) -> bool:
    details = error.details if isinstance(error.details, Mapping) else {}
    return work.kind.name == "apply" and details.get("error_code") == CONFLICT


def _shown(error: ToolError, root: Path) -> ToolError:
    """The error without the place of the run on this machine."""
    error.message = error.message.replace(f"{root}/", "").replace(str(root), "the run's folder")
    return error
