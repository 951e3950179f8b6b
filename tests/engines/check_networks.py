"""Publishing and reading on networks that fail: the store, the builder and the reader are on machines of their own.

`PUBLISHING_FAULTS` is the number of faults, `SEED` repeats a history. Needs what `make networks` needs.
"""

import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.engines.cluster_world import GENERATIONS, find_mixed_answers, search_locally
from tests.engines.opensearch_nodes import OpenSearchNode, make_node_folder
from tests.engines.s3_server import BUCKET, S3Server
from tests.networks.laboratory import Fault, Laboratory, Machine, find_missing, open_laboratory, start_python
from tests.support.object_store import PROGRAM_VARIABLE
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.skipif(bool(find_missing()), reason=find_missing()), pytest.mark.timeout(2400)]

FAULT_COUNT = int(os.environ.get("PUBLISHING_FAULTS", "10"))
LONG_FAULT_SECONDS = 12.0
RATE = "1mbit"
"""A link on which packets of a publication wait and those that do not fit into the queue are lost."""

START_SECONDS = 600.0
RECOVERY_SECONDS = 300.0
"""Seconds in which publishing and reading go on after the last fault: an attempt of a request, and its repetitions."""

SERVER_PORT = 9200


class PublishingWorld:
    """The three machines and what the processes on them have reported."""

    def __init__(self, store: str, folder: Path, lab: Laboratory) -> None:
        self.store, self.folder = store, folder
        self.server_machine, self.builder, self.reader = (lab.add_machine(name) for name in ("store", "build", "read"))
        self.address = f"http://{self.server_machine.address}:{SERVER_PORT}"

    def start_peer(self, role: str, machine: Machine) -> "subprocess.Popen[bytes]":
        """Start the builder or the reader."""
        with self._log(role).open("ab") as log:
            words = ("-m", "tests.engines.network_peer", role, self.store, self.address, str(self.folder))
            return start_python(machine, *words, stdout=log, stderr=subprocess.STDOUT)

    def _log(self, role: str) -> Path:
        return self.folder / f"{role}.log"

    def read_events(self, role: str, key: str) -> list[Any]:
        """Return what a process has reported so far under this key."""
        text = self._log(role).read_text() if self._log(role).exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        assert len(events) == len(lines), lines[-20:]
        return [event[key] for event in events if key in event]

    @property
    def answers(self) -> list[Any]:
        """The answers of the reader."""
        return [tuple(map(tuple, answer)) for answer in self.read_events("read", "answer")]


@pytest.fixture(params=["s3", "opensearch"])
def world(request: pytest.FixtureRequest, tmp_path: Path, folders: dict[str, Path]) -> Iterator[PublishingWorld]:
    """Yield a store with a builder and a reader that are already working."""
    with open_laboratory() as lab, ExitStack() as stack:
        for name, folder in folders.items():
            (tmp_path / name).symlink_to(folder)
        publishing_world = PublishingWorld(request.param, tmp_path, lab)
        machine = publishing_world.server_machine
        if request.param == "s3":
            _start_s3_server(machine, tmp_path)
        else:
            _start_node(machine, request.getfixturevalue("opensearch_home"), stack)
        publishing_world.start_peer("build", publishing_world.builder)
        wait_until(lambda: publishing_world.read_events("build", "published"), limit=START_SECONDS)
        publishing_world.start_peer("read", publishing_world.reader)
        wait_until(lambda: publishing_world.answers, limit=START_SECONDS)
        yield publishing_world


def _start_s3_server(machine: Machine, folder: Path) -> None:
    if PROGRAM_VARIABLE not in os.environ:
        pytest.skip("run make engines, which builds an S3 server")
    (folder / "s3" / "data" / BUCKET).mkdir(parents=True)
    (folder / "s3" / "meta").mkdir()
    server = S3Server(Path(os.environ[PROGRAM_VARIABLE]), folder / "s3", SERVER_PORT, machine.address)
    with (folder / "s3" / "output.log").open("ab") as output:
        machine.start(server.argv, env=server.environ, stdout=output, stderr=output)


def _start_node(machine: Machine, home: Path, stack: ExitStack) -> None:
    folder = stack.enter_context(make_node_folder())
    settings = {"network.host": machine.address, "discovery.type": "single-node"}
    node = OpenSearchNode(home, folder, "node", SERVER_PORT, settings)
    node.write_config()
    with (folder / "output.log").open("ab") as output:
        machine.start(node.argv, env=node.environ, cwd=folder, stdout=output, stderr=output)


def choose_fault(world: PublishingWorld, chance: random.Random) -> Fault:
    """Choose a fault, where it happens and how long it lasts."""
    machine = chance.choice([world.server_machine, world.builder, world.reader])
    peer = chance.choice([world.builder, world.reader])
    server = world.server_machine
    seconds = chance.choice([chance.uniform(0.2, 2.0), LONG_FAULT_SECONDS])

    def stop_answers() -> None:
        server.lose_answers_to(peer)

    kinds: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        (f"silence of {machine.name}", machine.pull_cable, machine.plug_cable),
        (f"no link of {machine.name}", machine.disconnect, machine.connect),
        (f"slow {machine.name}", lambda: machine.slow_down(RATE), machine.speed_up),
        (f"no answers to {peer.name}", stop_answers, lambda: server.answer_again(peer)),
    ]
    return Fault(*chance.choice(kinds), seconds)


def test_readers_get_whole_generations_and_the_last_one_at_the_end(world: PublishingWorld) -> None:
    seed = int(os.environ.get("SEED", "0")) or random.randrange(1, 1 << 31)
    chance = random.Random(seed)
    print(f"  {world.store}: seed {seed}, {FAULT_COUNT} faults", flush=True)
    expected = [search_locally(world.folder / name) for name in GENERATIONS]
    for _ in range(FAULT_COUNT):
        choose_fault(world, chance).happen()

    published_before = len(world.read_events("build", "published"))
    wait_until(lambda: len(world.read_events("build", "published")) > published_before, limit=RECOVERY_SECONDS)
    (world.folder / "stop").touch()
    wait_until(lambda: world.builder.processes[0].poll() is not None, limit=RECOVERY_SECONDS)
    last = search_locally(world.folder / world.read_events("build", "published")[-1])
    wait_until(lambda: world.answers[-1] == last, limit=RECOVERY_SECONDS)

    published, failures = world.read_events("build", "published"), world.read_events("build", "failed")
    slowest = max(world.read_events("read", "seconds"))
    print(
        f"  {len(published)} publications and {len(failures)} that failed, {len(world.answers)} answers and"
        f" {len(world.read_events('read', 'failed'))} errors of the reader, the slowest after {slowest:.0f} s"
    )
    assert find_mixed_answers(world.answers, *expected) == [], f"repeat with SEED={seed}"
