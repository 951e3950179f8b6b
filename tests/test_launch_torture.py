"""A real launch over MCP, with real git and real Hugo, on a server that is killed in every state.

The client does what any client does: it calls the next tool, and when the server is gone it starts
another and calls again. In the end there is one run, every step is recorded once, and the site's
repository has one branch more with one commit on it.
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

from cleats.toolsets.launch.folder import RunFolder
from cleats.toolsets.launch.snapshot import replay
from cleats.toolsets.launch.store.sqlite import SqliteStore
from tests.held import held
from tests.launch_client import CONFIG, REAL, Client, client
from tests.launch_sites import committed, sample
from tests.peer import ROOT
from tests.waiting import until

pytestmark = pytest.mark.timeout(900)  # some fifteen servers one after the other

RESTS = ("PLAN_READY", "DRAFT_READY")
HELD = [
    *("clone", "inventory", "snippets", "plan", "draft:docs", "apply", "validate:1"),
    *("fix:1", "apply:fix:1", "request"),
]
"""The steps that stop in the middle, each until its server is killed; see `held_steps`."""
HOLD = '#!/bin/sh\nif mkdir "$0.held"; then sleep 3600; fi\n'
"""So does the first push, when its branch is there."""


@dataclass
class World:
    """Two repositories, one run, and whoever looks at it from outside."""

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
        return held(SqliteStore(self.home / ".local/share/cleats/launch/runs.sqlite"))

    def config(self) -> dict[str, Any]:
        source, site = self.home / "source", self.home / "site"
        sample(source, "source")
        sample(site, "site")
        commit = committed(source)
        committed(site)
        git(self.home, "clone", "--quiet", "--bare", str(site), str(self.remote))
        hook = self.remote / "hooks" / "post-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(HOLD)
        hook.chmod(0o755)
        (self.home / "hold.json").write_text(json.dumps(HELD))
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

    def due(self) -> dict[str, Path]:
        """The steps that are still to be interrupted, and what is there when they stop."""
        places = {step: self.home / "held" / step for step in HELD}
        places["commit"] = self.remote / "hooks" / "post-receive.held"
        return {step: place for step, place in places.items() if step not in self.killed}

    def branches(self) -> list[str]:
        return git(self.remote, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()

    def left(self) -> list[int]:
        """Processes that were started for this home and still live."""
        found = [each for each in Path("/proc").iterdir() if each.name.isdigit()]
        return [int(each.name) for each in found if self.ours(each)]

    def ours(self, process: Path) -> bool:
        try:
            environ = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return b"HOME=" + str(self.home).encode() in environ


def git(folder: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True)
    return done.stdout.decode()


@contextmanager
def server(world: World) -> Iterator[Client]:
    environ = {
        "CLEATS_LAUNCH_LEASE": "1",
        "CLEATS_LAUNCH_PROFILE": "plain",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "servers" / "held_steps"), str(ROOT)]),
    }
    with client(world.home, *REAL, **environ) as made:
        yield made


def attempt(world: World, verb: str) -> str:
    """Start a server and call a tool; kill the server if a step has stopped. The state then."""
    store, due = world.store, world.due()

    with server(world) as asked:
        asked.peer.call("it", f"launch_{verb}", run_id=world.run_id)

        def stopped() -> list[str]:
            return [step for step, place in due.items() if place.exists()]

        until(lambda: stopped() or any(b'"id":"it"' in line for line in asked.peer.lines))
        for step in stopped():
            items = store.snapshot(world.run_id)["work_items"]
            assert [e["scope_key"] for e in items if e["status"] == "running"] == [step]
            asked.peer.signal(signal.SIGKILL)
            asked.peer.wait()
            world.killed.append(step)
    until(lambda: not world.left())
    state: str = store.snapshot(world.run_id)["run_state"]
    store.close()
    return state


def test_a_launch_survives_the_kill_of_its_server_in_every_state(tmp_path: Path) -> None:
    world = World(tmp_path / "home")
    world.home.mkdir()
    config = world.config()
    with server(world) as asked:
        world.run_id = asked.call("launch_start_run", run_config=config)["run_id"]

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
        states.append(attempt(world, verb))

    store = world.store
    snapshot = store.snapshot(world.run_id)
    finished = Counter(
        item["scope_key"] for item in snapshot["work_items"] if item["status"] == "finished"
    )
    steps = [step.step for step in store.steps(world.run_id)]
    log = git(world.remote, "log", "--format=%s", f"main..launch/{world.run_id}/sample")
    assert states[-1] == "DONE", states
    assert world.due() == {}
    assert set(RESTS) <= set(states)  # each server was killed there too, at rest
    assert finished == Counter(steps)
    assert "fix:1" in steps
    assert world.branches() == [f"launch/{world.run_id}/sample", "main"]
    assert len(log.splitlines()) == 1
    assert store.verify(world.run_id)
    assert replay(world.run_id, store.events(world.run_id)) == snapshot
    store.close()


def test_twenty_starts_with_one_key_on_two_servers_are_one_run(tmp_path: Path) -> None:
    with client(tmp_path) as one, client(tmp_path) as two:
        both = (one, two)
        for number in range(10):
            for each in both:
                given = {"run_config": CONFIG, "idempotency_key": "the same"}
                each.peer.call(f"start{number}", "launch_start_run", **given)
        answers = [
            each.peer.answer(f"start{number}")["result"]["structuredContent"]
            for each in both
            for number in range(10)
        ]
        (run_id,) = {answer["run_id"] for answer in answers}
        status = two.on(run_id, "resume")["status"]
        items = json.loads(one.text(run_id, "snapshot.json"))["work_items"]

        assert all(answer["ok"] for answer in answers)
        assert status["state"] == "READY_FOR_PR"
        assert len(one.call("launch_list_runs")["runs"]) == 1
        # Both were asked to drive it; one of them did.
        assert len(items) == len({item["scope_key"] for item in items})
