"""A worker of a fleet in a process of its own: `fleet_worker FOLDER DATABASE`."""

import sys
from pathlib import Path

import anyio

from cleats.toolsets.launch.fleet.jobs import Jobs
from cleats.toolsets.launch.fleet.worker import Worker
from cleats.toolsets.launch.store.postgres import PostgresStore
from tests.launch_world import engine


def main() -> None:
    folder, url = sys.argv[1:]
    made = engine(Path(folder), store=PostgresStore(url))
    print("ready", flush=True)  # noqa: T201 - whoever started it waits for this
    anyio.run(Worker(made, Jobs(url), concurrency=3, drain=0.2, pause=0.3).run)


main()
