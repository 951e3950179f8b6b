"""The measurements: whole runs by one and by two workers, and the database alone."""

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import anyio

from bench.fleet.world import BenchFleet, read_child_cpu_seconds, run_postgres, wait_until
from cleats.toolsets.launch.runs.events import EventDraft, TraceIds
from cleats.toolsets.launch.store.databases import PostgresStore
from cleats.toolsets.launch.store.model import RecordedStep, Run, RunLease

CONNECTION_COUNT = 8
"""Concurrent writers: they share the syncs of the database, as the workers of a fleet do."""

BENCH_TRACE = TraceIds()


@dataclass(frozen=True, slots=True)
class FleetRuns:
    """The figures of a fleet that drove some runs."""

    workers: int
    runs: int
    seconds: float
    cpu: float
    """CPU seconds of the workers and all their children, per run."""
    transactions: float
    """Records in the database per run."""
    rows: float
    row_bytes: float
    disk_bytes: float

    @property
    def rate(self) -> float:
        """Runs per second."""
        return self.runs / self.seconds


def measure_runs(workers: int, runs: int) -> FleetRuns:
    """Drive whole runs of the sample, from the start to a green build."""
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as folder, run_postgres() as url:
        fleet = BenchFleet(Path(folder), url)
        anyio.run(fleet.create_runs, runs)
        cpu_before = read_child_cpu_seconds()
        with fleet.run_workers(workers, concurrency=1):
            seconds = wait_until(lambda: fleet.count_ended() == runs)
        cpu = (read_child_cpu_seconds() - cpu_before) / runs
        table_sizes = fleet.measure_tables()
        fleet.engine.store.close()
        return FleetRuns(
            workers,
            runs,
            seconds,
            cpu,
            # A step is recorded at its start and at its end; the state may change in between.
            transactions=2 * table_sizes["cleats_steps rows"] / runs + 4,
            rows=sum(value for name, value in table_sizes.items() if name.endswith("rows")) / runs,
            row_bytes=sum(value for name, value in table_sizes.items() if name.endswith("bytes")) / runs,
            disk_bytes=fleet.measure_disk_bytes() / runs,
        )


def measure_records(count: int) -> float:
    """Return the synced records per second that the database takes from several connections."""
    with run_postgres() as url:
        stores = [PostgresStore(url) for _ in range(CONNECTION_COUNT)]
        leases = [_create_lease(store, number) for number, store in enumerate(stores)]
        writer_records = count // CONNECTION_COUNT
        start_time = time.monotonic()
        with ThreadPoolExecutor(CONNECTION_COUNT) as pool:
            list(pool.map(_write_records, stores, leases, [writer_records] * CONNECTION_COUNT))
        rate = writer_records * CONNECTION_COUNT / (time.monotonic() - start_time)
        for store in stores:
            store.close()
        return rate


def _create_lease(store: PostgresStore, number: int) -> RunLease:
    config = {"product_slug": "bench"}
    new = Run(
        run_id=f"r_bench_{number:04}",
        product_slug="bench",
        config=config,
        shown_config=config,
        config_hash="h",
    )
    store.create(new, [EventDraft("RUN_CREATED", {"required_sections": ["docs"]})], BENCH_TRACE)
    lease = store.acquire(new.run_id, "bench", 3600)
    assert lease is not None
    return lease


def _write_records(store: PostgresStore, lease: RunLease, count: int) -> None:
    for number in range(count):
        draft = EventDraft("GATE_RUN_STARTED", {"gate": "bench", "number": number})
        store.record(lease, [draft], BENCH_TRACE, step=RecordedStep(f"step:{number}", {}, 0.0))
