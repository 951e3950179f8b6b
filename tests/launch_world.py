"""A small world for launch: jobs without the engine, and an engine with a small worker."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from opentelemetry.trace import Tracer

from cleats.toolsets.launch import artifacts as documents
from cleats.toolsets.launch.drive.child import Tell, Workers, drafts
from cleats.toolsets.launch.drive.course import Observe
from cleats.toolsets.launch.drive.driver import Engine
from cleats.toolsets.launch.drive.leases import Pace
from cleats.toolsets.launch.drive.records import Result
from cleats.toolsets.launch.drive.steps import KINDS
from cleats.toolsets.launch.folder import RunFolder
from cleats.toolsets.launch.states import State
from cleats.toolsets.launch.store.port import Lease, Run, RunStore
from cleats.toolsets.launch.store.sqlite import SqliteStore
from cleats.toolsets.launch.workers.job import Job
from tests.held import held
from tests.servers import launch_worker

ROOT = Path(__file__).parent.parent

RUN_ID = "r_2026-01-21T10-00-00Z_0123abcd"


def job(
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
) -> Job:
    """A job in a run folder below `tmp_path`, with these artifacts written already.

    A mapping or a list is written canonically and not checked: a test may want a bad one. What
    the worker writes can be read back with `job.json(name)`; `job.outputs` and `job.events` have
    the rest.
    """
    folder = RunFolder(tmp_path / "runs" / RUN_ID)
    folder.repo.mkdir(parents=True, exist_ok=True)
    folder.site.mkdir(parents=True, exist_ok=True)
    return Job(
        run_id=RUN_ID,
        step=step,
        worker=worker,
        scope=scope,
        attempt=attempt,
        config=config or {},
        root=folder.root,
        inputs={name: folder.put(_bytes(data)) for name, data in (artifacts or {}).items()},
        facts=facts or {},
        secrets=secrets or {},
        settings=settings or {},
    )


def _bytes(data: Any) -> bytes:
    if isinstance(data, bytes):
        return data
    return data.encode() if isinstance(data, str) else documents.canonical(data)


MODULES = dict.fromkeys(KINDS, "tests.servers.launch_worker")
"""Every step is done by the small worker of the tests, in a real process."""

PACE = Pace(lease=60.0, renew=0.2, look=0.05, wait=0.02)
"""Leases that outlast whatever holds a machine up; that of a dead driver is let `run_out`."""


class Inline(Workers):
    """Does a job in this very process: for tests of what surrounds the jobs."""

    async def run(self, kind: str, job: Job, tell: Tell) -> Result:
        assert job.step.partition(":")[0] == kind

        def say(said: Mapping[str, Any]) -> None:
            tell(*said["tell"].values())

        made = await launch_worker.run(replace(job, say=say))
        return Result(made, job.outputs, drafts(job.events))


def engine(
    tmp_path: Path,
    *,
    store: RunStore | None = None,
    pace: Pace = PACE,
    inline: bool = False,
    observe: Observe = lambda _run, _events: None,
    tracer: Tracer | None = None,
) -> Engine:
    """An engine with the small worker, in processes or `inline`, on a store below `tmp_path`."""
    made = Engine(
        store or held(SqliteStore(tmp_path / "runs.db")),
        tmp_path / "runs",
        modules=MODULES,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        grace=0.2,
        pace=pace,
        observe=observe,
        tracer=tracer,
    )
    if inline:
        made._means = replace(made._means, workers=Inline({}, None, 0.2))
    return made


def config(mode: str = "auto", **given: Any) -> dict[str, Any]:
    """A configuration for the small worker: `test` says what goes wrong, `drive` who drives."""
    drive = {"mode": mode, **given.pop("drive", {})}
    return {"product_slug": "zip", "required_sections": ["docs"], "drive": drive, **given}


async def start(engine: Engine, config: Mapping[str, Any], **given: Any) -> Run:
    """Create a run and nothing else."""
    digest = documents.digest(documents.canonical(config))
    run, _ = await engine.create(config, config_hash=digest, shown_config=config, **given)
    return run


@contextmanager
def looking(store: RunStore) -> Iterator[list[State]]:
    """The states that whoever waits for a lease has seen, while the block runs."""
    seen: list[State] = []
    get = store.get

    def look(run_id: str) -> Run:
        run = get(run_id)
        seen.append(run.state)
        return run

    store.get = look  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        store.get = get  # type: ignore[method-assign]


def run_out(store: RunStore, run_id: str) -> None:
    """Let the lease of a run end now, as time would: its driver is dead, or is to be robbed."""
    held_by = store.get(run_id)
    store.renew(Lease(run_id, held_by.owner, held_by.epoch), -1)
