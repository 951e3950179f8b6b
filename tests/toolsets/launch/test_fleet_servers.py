"""A test of a fleet: two servers and two workers on one PostgreSQL, some of which are killed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.launch.store.databases import PostgresStore
from tests.support.http_client import CLEATS_COMMAND, WebServer, run_web_server
from tests.support.launch_sites import commit_folder, copy_sample
from tests.support.postgres import create_database
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(400)  # real runs, with git and Hugo, on whatever cores there are

RUN_COUNT = 3


class ServerFleet:
    """The database, the folders and the settings that the machines of a fleet share."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.environ = {
            "CLEATS_DATABASE_URL": create_database(),
            "CLEATS_LAUNCH_RUNS_DIR": str(folder / "runs"),
            "CLEATS_LAUNCH_LEASE": "5",
            "CLEATS_HTTP_ROOTS": str(folder),
            "CLEATS_LAUNCH_PROFILE": "plain",
            "CLEATS_TELEMETRY": "off",
        }
        self.store = PostgresStore(self.environ["CLEATS_DATABASE_URL"])
        stack.callback(self.store.close)
        copy_sample(folder / "source", "source")
        copy_sample(folder / "site", "site")
        self.commit = commit_folder(folder / "source")
        commit_folder(folder / "site")
        self.run_git("clone", "--quiet", "--bare", "site", "site.git")

    def run_git(self, *words: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
        process = subprocess.run(["git", *words], cwd=self.folder, env=env, check=True, capture_output=True)
        return process.stdout.decode()

    def build_machine_environ(self, name: str) -> dict[str, str]:
        """Return the environment of a machine: its own data folder and the shared settings."""
        home = self.folder / name
        home.mkdir()
        return {**self.environ, "CLEATS_DATA_DIR": str(home / "data")}

    def start_server(self, name: str) -> WebServer:
        environ = self.build_machine_environ(name)
        server_context = run_web_server(*CLEATS_COMMAND, "launch", home=self.folder / name, **environ)
        return self.stack.enter_context(server_context)

    def start_worker(self, name: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-m", "cleats", "worker"],
            env={**os.environ, **self.build_machine_environ(name)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def build_config(self) -> dict[str, Any]:
        return {
            "family": "measurekit",
            "target_platform": "python",
            "github_repo_url": str(self.folder / "source"),
            "github_ref": self.commit,
            "site_repo_url": str(self.folder / "site.git"),
            "required_sections": ["docs"],
        }

    def read_state(self, run_id: str) -> str:
        return str(self.store.get_snapshot(run_id)["run_state"])

    def count_steps(self) -> int:
        return sum(len(self.store.list_steps(run.run_id)) for run in self.store.list_runs())


@contextmanager
def open_fleet(folder: Path) -> Iterator[ServerFleet]:
    with ExitStack() as stack:
        yield ServerFleet(folder, stack)


def call_tool(web: WebServer, tool: str, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = web.call_tool(tool, **arguments).result
    return result


def test_two_servers_and_two_workers_finish_every_run_although_one_of_each_is_killed(
    tmp_path: Path,
) -> None:
    with open_fleet(tmp_path) as fleet:
        left_server, right_server = fleet.start_server("left"), fleet.start_server("right")
        first = fleet.start_worker("first")
        fleet.start_worker("second")
        runs = [
            call_tool(web, "launch_start_run", run_config=fleet.build_config(), idempotency_key=str(number))["run_id"]
            for number, web in zip(range(RUN_COUNT), (left_server, right_server, left_server), strict=True)
        ]
        again = call_tool(right_server, "launch_start_run", run_config=fleet.build_config(), idempotency_key="0")
        assert again["run_id"] == runs[0]

        wait_until(lambda: fleet.count_steps() > 3, limit=120)
        first.kill()
        left_server.process.kill()
        for run_id in runs:
            wait_until(lambda run_id=run_id: fleet.read_state(run_id) == "READY_FOR_PR", limit=240)  # type: ignore[misc]

        listed_ids = {listed_run["run_id"] for listed_run in call_tool(right_server, "launch_list_runs")["runs"]}
        pull_requests = [call_tool(right_server, "launch_open_pr", run_id=run_id) for run_id in runs]
        assert listed_ids == set(runs)
        for run_id, pr in zip(runs, pull_requests, strict=True):
            tip = fleet.run_git("-C", "site.git", "rev-parse", pr["branch"]).strip()
            parent = fleet.run_git("-C", "site.git", "rev-parse", f"{pr['branch']}^").strip()
            main = fleet.run_git("-C", "site.git", "rev-parse", "main").strip()
            names = [step.step for step in fleet.store.list_steps(run_id)]
            assert (tip, parent) == (pr["commit_sha"], main)
            assert len(names) == len(set(names))
            assert fleet.read_state(run_id) == "DONE"
            assert fleet.store.verify(run_id)
