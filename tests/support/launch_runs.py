"""Helpers for tests of launch: jobs without the engine, and an engine with a small worker."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from opentelemetry.trace import Tracer

from cleats.runtime.telemetry import LocalTracer, discard_spans
from cleats.toolsets.launch.drive.engine import RunEngine
from cleats.toolsets.launch.drive.leases import LeaseTiming
from cleats.toolsets.launch.drive.pipeline import STEP_KINDS
from cleats.toolsets.launch.drive.run_driver import DriverResources, RecordObserver
from cleats.toolsets.launch.runs import artifacts as documents
from cleats.toolsets.launch.runs.job import ProgressCallback, StepResult, WorkerJob, WorkerLauncher, parse_event_drafts
from cleats.toolsets.launch.runs.states import RunState
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.store.databases import SqliteStore
from cleats.toolsets.launch.store.model import Run, RunLease
from cleats.toolsets.launch.store.run_store import RunStore
from tests.support.held_locks import close_after_test
from tests.support.paths import REPOSITORY_ROOT
from tests.support.servers import launch_worker

TEST_RUN_ID = "r_2026-01-21T10-00-00Z_0123abcd"


def create_job(
    tmp_path: Path,
    *,
    step: str = "test",
    worker: str = "W0",
    scope: str = "",
    attempt: int = 1,
    config: Mapping[str, Any] | None = None,
    artifacts: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> WorkerJob:
    """Create a job in a run folder below `tmp_path` in which these artifacts are already written.

    A mapping or a list is written canonically and not checked, because a test may need an invalid
    one. `job.json(name)` reads back what the worker writes; the rest is in `job.outputs` and
    `job.events`.
    """
    folder = RunFolder(tmp_path / "runs" / TEST_RUN_ID)
    folder.repo.mkdir(parents=True, exist_ok=True)
    folder.site.mkdir(parents=True, exist_ok=True)
    return WorkerJob(
        run_id=TEST_RUN_ID,
        step=step,
        worker=worker,
        scope=scope,
        attempt=attempt,
        config=config or {},
        root=folder.root,
        inputs={name: folder.put_object(_encode_artifact(data)) for name, data in (artifacts or {}).items()},
        facts=facts or {},
        secrets=secrets or {},
        settings=settings or {},
    )


def _encode_artifact(data: Any) -> bytes:
    if isinstance(data, bytes):
        return data
    return data.encode() if isinstance(data, str) else documents.encode_canonical_json(data)


WORKER_FUNCTIONS = dict.fromkeys(STEP_KINDS, "tests.support.servers.launch_worker:run")
"""The worker module of every step: the small worker of the tests, run in a real process."""

TEST_PACE = LeaseTiming(lease_seconds=60.0, renew_seconds=0.2, check_seconds=0.05, retry_seconds=0.02)
"""Leases that outlast any pause of the machine; `expire_lease` ends the lease of a dead driver."""


class InlineWorkers(WorkerLauncher):
    """Workers that run a job in this process, for tests of the code around the jobs."""

    async def run(self, kind: str, job: WorkerJob, report_progress: ProgressCallback) -> StepResult:
        assert job.step.partition(":")[0] == kind

        def forward_message(message: Mapping[str, Any]) -> None:
            report_progress(*message["tell"].values())

        output = await launch_worker.run(replace(job, send=forward_message))
        return StepResult(output, job.outputs, parse_event_drafts(job.events))


def create_engine(
    tmp_path: Path,
    *,
    store: RunStore | None = None,
    pace: LeaseTiming = TEST_PACE,
    inline: bool = False,
    observe: RecordObserver = lambda _run, _events: None,
    tracer: Tracer | None = None,
) -> RunEngine:
    """Create an engine with the small worker, in processes or `inline`, and a store."""
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY_ROOT)}
    resources = DriverResources(
        store=store or close_after_test(SqliteStore(tmp_path / "runs.db")),
        runs=tmp_path / "runs",
        workers=InlineWorkers({}, None, 0.2) if inline else WorkerLauncher(WORKER_FUNCTIONS, env, 0.2),
        observe=observe,
        tracer=tracer or LocalTracer(discard_spans),
    )
    return RunEngine(resources, pace)


def build_config(mode: str = "auto", **values: Any) -> dict[str, Any]:
    """Build a configuration for the small worker: `test` has the faults, `drive` the drive mode."""
    drive = {"mode": mode, **values.pop("drive", {})}
    return {"product_slug": "zip", "required_sections": ["docs"], "drive": drive, **values}


async def create_run(engine: RunEngine, config: Mapping[str, Any], **options: Any) -> Run:
    """Create a run without driving it."""
    digest = hashlib.sha256(documents.encode_canonical_json(config)).hexdigest()
    run, _ = await engine.create(config, config_hash=digest, shown_config=config, **options)
    return run


@contextmanager
def record_states(store: RunStore) -> Iterator[list[RunState]]:
    """Record the run states that a driver sees while it waits for a lease."""
    states: list[RunState] = []
    original_get = store.get

    def get_and_record(run_id: str) -> Run:
        run = original_get(run_id)
        states.append(run.state)
        return run

    store.get = get_and_record  # type: ignore[method-assign]
    try:
        yield states
    finally:
        store.get = original_get  # type: ignore[method-assign]


def expire_lease(store: RunStore, run_id: str) -> None:
    """Expire the lease of a run now: its driver is dead, or is to lose the run."""
    run = store.get(run_id)
    store.renew(RunLease(run_id, run.owner, run.epoch), -1)
