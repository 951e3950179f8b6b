"""A worker of a fleet as a separate process: `fleet_worker FOLDER DATABASE [LEASE_SECONDS]`."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from cleats.runtime import shutdown
from cleats.runtime.spans import SpanFile
from cleats.runtime.telemetry import LocalTracer
from cleats.toolsets.launch.fleet import FleetWorker, RunQueue
from cleats.toolsets.launch.store.databases import PostgresStore
from tests.support.launch_runs import TEST_PACE, create_engine


async def main() -> None:
    """Work as `cleats worker` does until a signal arrives."""
    folder, url, *lease_seconds = sys.argv[1:]
    pace = replace(TEST_PACE, lease_seconds=float(lease_seconds[0])) if lease_seconds else TEST_PACE
    tracer = LocalTracer(SpanFile(Path(folder) / "spans"))
    run_engine = create_engine(Path(folder), store=PostgresStore(url), pace=pace, tracer=tracer)
    worker = FleetWorker(run_engine, RunQueue(url), concurrency=3, drain=0.2, pause=0.3)
    with shutdown.watch_signals() as stop:
        # The parent waits for this line; the owner of the leases begins with the second word.
        print("ready", run_engine._leases._owner, flush=True)  # noqa: T201
        worker_task = asyncio.create_task(worker.run())
        stop_task = asyncio.create_task(stop.requested.wait())
        await asyncio.wait({worker_task, stop_task}, return_when=asyncio.FIRST_COMPLETED)
        worker_task.cancel()
        await asyncio.gather(worker_task, return_exceptions=True)


asyncio.run(main())
