"""What is measured: whole runs by one and by two workers, and the database by itself."""

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import anyio

from bench.fleet.world import Fleet, postgres, spent, wait
from cleats.toolsets.launch.events import Draft, Trace
from cleats.toolsets.launch.store.port import Lease, NewRun, Step
from cleats.toolsets.launch.store.postgres import PostgresStore

CONNECTIONS = 8
"""Writers at once: they share the database's syncs, as the workers of a fleet do."""

TRACE = Trace()


@dataclass(frozen=True, slots=True)
class Runs:
    """A fleet that drove some runs."""

    workers: int
    runs: int
    seconds: float
    cpu: float
    """CPU seconds of the workers and all that they started, for one run."""
    transactions: float
    """Records in the database for one run."""
    rows: float
    row_bytes: float
    disk_bytes: float

    @property
    def rate(self) -> float:
        """Runs in a second."""
        return self.runs / self.seconds


def whole_runs(workers: int, runs: int) -> Runs:
    """Drive whole runs of the sample, from nothing to a green build."""
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as folder, postgres() as url:
        fleet = Fleet(Path(folder), url)
        anyio.run(fleet.start, runs)
        before = spent()
        with fleet.workers(workers, concurrency=1):
            seconds = wait(lambda: fleet.ended() == runs)
        cpu = (spent() - before) / runs
        left = fleet.rows()
        fleet.engine.store.close()
        return Runs(
            workers,
            runs,
            seconds,
            cpu,
            # A step is recorded when it begins and when it ends; a state may change in between.
            transactions=2 * left["cleats_steps rows"] / runs + 4,
            rows=sum(value for name, value in left.items() if name.endswith("rows")) / runs,
            row_bytes=sum(value for name, value in left.items() if name.endswith("bytes")) / runs,
            disk_bytes=fleet.bytes_on_disk() / runs,
        )


def records(count: int) -> float:
    """Records that the database takes in a second, each synced, from as many as a fleet has."""
    with postgres() as url:
        stores = [PostgresStore(url) for _ in range(CONNECTIONS)]
        leases = [_lease(store, number) for number, store in enumerate(stores)]
        each = count // CONNECTIONS
        begun = time.monotonic()
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(_record, stores, leases, [each] * CONNECTIONS))
        rate = each * CONNECTIONS / (time.monotonic() - begun)
        for store in stores:
            store.close()
        return rate


def _lease(store: PostgresStore, number: int) -> Lease:
    config = {"product_slug": "bench"}
    new = NewRun(
        run_id=f"r_bench_{number:04}",
        product_slug="bench",
        config=config,
        shown_config=config,
        config_hash="h",
    )
    store.create(new, [Draft("RUN_CREATED", {"required_sections": ["docs"]})], TRACE)
    lease = store.acquire(new.run_id, "bench", 3600)
    assert lease is not None
    return lease


def _record(store: PostgresStore, lease: Lease, count: int) -> None:
    for number in range(count):
        draft = Draft("GATE_RUN_STARTED", {"gate": "bench", "number": number})
        store.record(lease, [draft], TRACE, step=Step(f"step:{number}", {}, 0.0))
