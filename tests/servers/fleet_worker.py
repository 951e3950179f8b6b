"""A worker of a fleet in a process of its own: `fleet_worker FOLDER DATABASE`."""

import asyncio
import sys
from pathlib import Path

from cleats.runtime import shutdown
from cleats.runtime.spans import SpanFile
from cleats.runtime.telemetry import LocalTracer
from cleats.toolsets.launch.fleet.jobs import Jobs
from cleats.toolsets.launch.fleet.worker import Worker
from cleats.toolsets.launch.store.postgres import PostgresStore
from tests.launch_world import engine


async def main() -> None:
    """Work as `cleats worker` does, until a signal comes."""
    folder, url = sys.argv[1:]
    tracer = LocalTracer(SpanFile(Path(folder) / "spans"))
    made = engine(Path(folder), store=PostgresStore(url), tracer=tracer)
    worker = Worker(made, Jobs(url), concurrency=3, drain=0.2, pause=0.3)
    with shutdown.on_signals() as stop:
        # Whoever started it waits for this; its leases begin with the second word.
        print("ready", made._leases._owner, flush=True)  # noqa: T201
        working = asyncio.create_task(worker.run())
        asked = asyncio.create_task(stop.asked.wait())
        await asyncio.wait({working, asked}, return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


asyncio.run(main())
