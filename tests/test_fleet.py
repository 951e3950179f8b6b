"""A whole fleet: two servers and two workers on one PostgreSQL, some of which are killed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.launch.store.postgres import PostgresStore
from tests.launch_sites import committed, sample
from tests.postgres import database
from tests.waiting import until
from tests.web import CLEATS, Web, serving

pytestmark = pytest.mark.timeout(400)  # real runs, with git and Hugo, on whatever cores there are

RUNS = 3


class Fleet:
    """Everything that the machines of a fleet share, and the machines."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.environ = {
            "CLEATS_DATABASE_URL": database(),
            "CLEATS_LAUNCH_RUNS_DIR": str(folder / "runs"),
            "CLEATS_LAUNCH_LEASE": "5",
            "CLEATS_HTTP_ROOTS": str(folder),
            "CLEATS_LAUNCH_PROFILE": "plain",
            "CLEATS_TELEMETRY": "off",
        }
        self.store = PostgresStore(self.environ["CLEATS_DATABASE_URL"])
        stack.callback(self.store.close)
        sample(folder / "source", "source")
        sample(folder / "site", "site")
        self.commit = committed(folder / "source")
        committed(folder / "site")
        self.git("clone", "--quiet", "--bare", "site", "site.git")

    def git(self, *words: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env=env, check=True, capture_output=True
        )
        return done.stdout.decode()

    def machine(self, name: str) -> dict[str, str]:
        """What is set on a machine: it has data of its own, and the rest in common."""
        home = self.folder / name
        home.mkdir()
        return {**self.environ, "CLEATS_DATA_DIR": str(home / "data")}

    def server(self, name: str) -> Web:
        environ = self.machine(name)
        served = serving(*CLEATS, "launch", home=self.folder / name, **environ)
        return self.stack.enter_context(served)

    def worker(self, name: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-m", "cleats", "worker"],
            env={**os.environ, **self.machine(name)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def config(self) -> dict[str, Any]:
        return {
            "family": "measurekit",
            "target_platform": "python",
            "github_repo_url": str(self.folder / "source"),
            "github_ref": self.commit,
            "site_repo_url": str(self.folder / "site.git"),
            "required_sections": ["docs"],
        }

    def state(self, run_id: str) -> str:
        return str(self.store.snapshot(run_id)["run_state"])

    def steps(self) -> int:
        return sum(len(self.store.steps(each.run_id)) for each in self.store.list())


@contextmanager
def a_fleet(folder: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(folder, stack)


def asked(web: Web, tool: str, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = web.call(tool, **arguments).result
    return result


def test_two_servers_and_two_workers_finish_every_run_although_one_of_each_is_killed(
    tmp_path: Path,
) -> None:
    with a_fleet(tmp_path) as fleet:
        left, right = fleet.server("left"), fleet.server("right")
        first = fleet.worker("first")
        fleet.worker("second")
        runs = [
            asked(web, "launch_start_run", run_config=fleet.config(), idempotency_key=str(number))[
                "run_id"
            ]
            for number, web in zip(range(RUNS), (left, right, left), strict=True)
        ]
        again = asked(right, "launch_start_run", run_config=fleet.config(), idempotency_key="0")
        assert again["run_id"] == runs[0]

        until(lambda: fleet.steps() > 3, limit=120)
        first.kill()
        left.process.kill()
        for run_id in runs:
            until(lambda run_id=run_id: fleet.state(run_id) == "READY_FOR_PR", limit=240)  # type: ignore[misc]

        listed = {each["run_id"] for each in asked(right, "launch_list_runs")["runs"]}
        opened = [asked(right, "launch_open_pr", run_id=run_id) for run_id in runs]
        assert listed == set(runs)
        for run_id, pr in zip(runs, opened, strict=True):
            tip = fleet.git("-C", "site.git", "rev-parse", pr["branch"]).strip()
            parent = fleet.git("-C", "site.git", "rev-parse", f"{pr['branch']}^").strip()
            main = fleet.git("-C", "site.git", "rev-parse", "main").strip()
            names = [step.step for step in fleet.store.steps(run_id)]
            assert (tip, parent) == (pr["commit_sha"], main)
            assert len(names) == len(set(names))
            assert fleet.state(run_id) == "DONE"
            assert fleet.store.verify(run_id)
