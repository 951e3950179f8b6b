"""Tests of a real launch over MCP, on a server that is killed in every state.

The client does what any client does: it calls the next tool, and when the server is gone it starts
another and calls again. In the end there is one run, every step is recorded once, and the site's
repository has one more branch with one commit on it.
"""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.launch.runs.snapshot import replay_events
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.store.databases import SqliteStore
from tests.support.held_locks import close_after_test
from tests.support.launch_client import REAL_SERVER_COMMAND, RUN_CONFIG, LaunchToolClient, open_launch_client
from tests.support.launch_sites import commit_folder, copy_sample
from tests.support.paths import REPOSITORY_ROOT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(900)  # some fifteen servers one after the other

RESTING_STATES = ("PLAN_READY", "DRAFT_READY")
HELD_STEPS = [
    *("clone", "inventory", "snippets", "plan", "draft:docs", "apply", "validate:1"),
    *("fix:1", "apply:fix:1", "request"),
]
"""The steps that stop in the middle, each until its server is killed; see `held_steps`."""
HOLD_HOOK = '#!/bin/sh\nif mkdir "$0.held"; then sleep 3600; fi\n'
"""A hook that stops the first push once its branch exists."""


@dataclass
class TortureRun:
    """Two repositories and one run, seen from outside."""

    home: Path
    run_id: str = ""
    killed: list[str] = field(default_factory=list)

    @property
    def remote(self) -> Path:
        return self.home / "site.git"

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.home / f".local/share/cleats/launch/runs/{self.run_id}")

    @property
    def store(self) -> SqliteStore:
        return close_after_test(SqliteStore(self.home / ".local/share/cleats/launch/runs.sqlite"))

    def build_config(self) -> dict[str, Any]:
        source, site = self.home / "source", self.home / "site"
        copy_sample(source, "source")
        copy_sample(site, "site")
        commit = commit_folder(source)
        commit_folder(site)
        run_git(self.home, "clone", "--quiet", "--bare", str(site), str(self.remote))
        hook = self.remote / "hooks" / "post-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(HOLD_HOOK)
        hook.chmod(0o755)
        (self.home / "hold.json").write_text(json.dumps(HELD_STEPS))
        return {
            "profile": "plain",
            "family": "sample",
            "target_platform": "python",
            "github_repo_url": str(source),
            "github_ref": commit,
            "site_repo_url": str(self.remote),
            "required_sections": ["docs"],
            "allow_manual_edits": True,
            "drive": {"mode": "stepwise"},
        }

    def list_due_steps(self) -> dict[str, Path]:
        """Return the steps still to be interrupted, and the paths that exist when they stop."""
        paths = {step: self.home / "held" / step for step in HELD_STEPS}
        paths["commit"] = self.remote / "hooks" / "post-receive.held"
        return {step: path for step, path in paths.items() if step not in self.killed}

    def list_branches(self) -> list[str]:
        return run_git(self.remote, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()

    def list_processes(self) -> list[int]:
        """Return the processes that were started for this home and still live."""
        process_folders = [
            process_folder for process_folder in Path("/proc").iterdir() if process_folder.name.isdigit()
        ]
        return [int(process_folder.name) for process_folder in process_folders if self.is_own_process(process_folder)]

    def is_own_process(self, process: Path) -> bool:
        try:
            environ = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return b"HOME=" + str(self.home).encode() in environ


def run_git(folder: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    process = subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True)
    return process.stdout.decode()


@contextmanager
def start_server(world: TortureRun) -> Iterator[LaunchToolClient]:
    environ = {
        "CLEATS_LAUNCH_LEASE": "1",
        "CLEATS_LAUNCH_PROFILE": "plain",
        "PYTHONPATH": os.pathsep.join(
            [str(REPOSITORY_ROOT / "tests" / "support" / "servers" / "held_steps"), str(REPOSITORY_ROOT)]
        ),
    }
    with open_launch_client(world.home, *REAL_SERVER_COMMAND, **environ) as launch_client:
        yield launch_client


def call_until_stopped(world: TortureRun, verb: str) -> str:
    """Start a server and call a tool; kill the server if a step has stopped; return the state."""
    store, due_steps = world.store, world.list_due_steps()

    with start_server(world) as launch_client:
        launch_client.peer.send_call("it", f"launch_{verb}", run_id=world.run_id)

        def list_stopped_steps() -> list[str]:
            return [step for step, path in due_steps.items() if path.exists()]

        wait_until(lambda: list_stopped_steps() or any(b'"id":"it"' in line for line in launch_client.peer.lines))
        for step in list_stopped_steps():
            items = store.get_snapshot(world.run_id)["work_items"]
            assert [item["scope_key"] for item in items if item["status"] == "running"] == [step]
            launch_client.peer.send_signal(signal.SIGKILL)
            launch_client.peer.wait_for_exit()
            world.killed.append(step)
    wait_until(lambda: not world.list_processes())
    state: str = store.get_snapshot(world.run_id)["run_state"]
    store.close()
    return state


def test_a_launch_survives_the_kill_of_its_server_in_every_state(tmp_path: Path) -> None:
    world = TortureRun(tmp_path / "home")
    world.home.mkdir()
    config = world.build_config()
    with start_server(world) as launch_client:
        world.run_id = launch_client.call("launch_start_run", run_config=config)["run_id"]

    verbs = {"VALIDATING": "fix_next", "READY_FOR_PR": "open_pr"}
    states = ["CREATED"]
    broken, kills = False, 0
    while states[-1] != "DONE" and len(states) < 60:
        verb = verbs.get(states[-1], "resume")
        if len(world.killed) > kills:
            verb, kills = "resume", len(world.killed)
        elif states[-1] == "READY_FOR_PR" and not broken:
            # What a person might leave behind, for the gates to find and the fixer to take away.
            page = next(world.folder.site.glob("content/docs/sample/**/*.md"))
            page.write_text(page.read_text() + "\n__BODY_INTRO__\n")
            verb, broken = "validate", True
        states.append(call_until_stopped(world, verb))

    store = world.store
    snapshot = store.get_snapshot(world.run_id)
    finish_counts = Counter(item["scope_key"] for item in snapshot["work_items"] if item["status"] == "finished")
    steps = [step.step for step in store.list_steps(world.run_id)]
    log = run_git(world.remote, "log", "--format=%s", f"main..launch/{world.run_id}/sample")
    assert states[-1] == "DONE", states
    assert world.list_due_steps() == {}
    assert set(RESTING_STATES) <= set(states)  # each server was killed there too, at rest
    assert finish_counts == Counter(steps)
    assert "fix:1" in steps
    assert world.list_branches() == [f"launch/{world.run_id}/sample", "main"]
    assert len(log.splitlines()) == 1
    assert store.verify(world.run_id)
    assert replay_events(world.run_id, store.list_events(world.run_id)) == snapshot
    store.close()


def test_twenty_starts_with_one_key_on_two_servers_are_one_run(tmp_path: Path) -> None:
    with open_launch_client(tmp_path) as one, open_launch_client(tmp_path) as two:
        both = (one, two)
        for number in range(10):
            for launch_client in both:
                args = {"run_config": RUN_CONFIG, "idempotency_key": "the same"}
                launch_client.peer.send_call(f"start{number}", "launch_start_run", **args)
        answers = [
            launch_client.peer.wait_for_answer(f"start{number}")["result"]["structuredContent"]
            for launch_client in both
            for number in range(10)
        ]
        (run_id,) = {answer["run_id"] for answer in answers}
        status = two.call_for_run(run_id, "resume")["status"]
        items = json.loads(one.read_artifact_text(run_id, "snapshot.json"))["work_items"]

        assert all(answer["ok"] for answer in answers)
        assert status["state"] == "READY_FOR_PR"
        assert len(one.call("launch_list_runs")["runs"]) == 1
        # Both were asked to drive it; one of them did.
        assert len(items) == len({item["scope_key"] for item in items})
