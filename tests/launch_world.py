"""A small world for launch: jobs for a worker that runs without the engine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleats.toolsets.launch import artifacts as documents
from cleats.toolsets.launch.folder import RunFolder
from cleats.toolsets.launch.workers.job import Job

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
