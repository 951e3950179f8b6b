"""An updated index says what a new one would say; a killed builder leaves a whole one."""

import os
import random
import signal
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.output import payload
from cleats.toolsets.code.search.request import read
from cleats.toolsets.code.store.generations import Shelf
from tests.index_world import World

STEPS = int(os.environ.get("CLEATS_TEST_WALK", "12"))
"""Changes of a repository in the walk; 200 for the whole truth."""

KILLS = int(os.environ.get("CLEATS_TEST_KILLS", "12"))
"""Builders that are killed; 50 for the whole truth."""

QUESTIONS: tuple[dict[str, Any], ...] = (
    {"query": "value", "top": 20},
    {"query": "compute the total", "mode": "all", "output": "full"},
    {"query": "alpha OR beta OR gamma", "top": 50, "explain": True},
    {"query": "handler", "author": "bob"},
    {"query": "run", "riskSink": "exec", "backend": "memory"},
)

WORDS = ("alpha", "beta", "gamma", "handler", "total", "value")


class Walk:
    """Random changes of one repository, the same for the same seed."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.branches = ["main"]
        self.numbers = iter(range(10_000))

    def begin(self) -> None:
        for _ in range(6):
            self.add()
        self.world.write(".gitignore", "*.tmp\n")
        self.world.git("init", "-q", "-b", "main")
        self.world.commit()

    def step(self) -> str:
        change: Callable[[], None] = self.random.choice(
            (
                *(self.edit,) * 4,
                *(self.add,) * 2,
                *(self.commit,) * 3,
                self.remove,
                self.rename,
                self.spoil,
                self.touch,
                self.branch,
                self.ignore,
            )
        )
        change()
        return change.__name__

    def files(self) -> list[str]:
        found = self.world.root.rglob("*.*")
        return sorted(
            str(path.relative_to(self.world.root))
            for path in found
            if path.is_file() and ".git/" not in str(path) and path.name != ".gitignore"
        )

    def any(self) -> str:
        return self.random.choice(self.files() or ["new.py"])

    def text(self, path: str) -> str:
        word, number = self.random.choice(WORDS), next(self.numbers)
        if path.endswith(".md"):
            return f"# {word} {number}\n\nWords about the {word}, to compute the total.\n"
        stem = Path(path).stem
        modules = [Path(each) for each in self.files() if each.endswith(".py")]
        other = self.random.choice(modules or [Path(path)])
        return (
            f"from {'.'.join(other.with_suffix('').parts)} import take_{other.stem}\n\n\n"
            f"def {word}_{number}({word}):\n"
            f'    """Compute the total of a {word}, or its value."""\n'
            f"    if {word}:\n        print({word})\n"
            f"    return take_{other.stem}(input())\n\n\n"
            f"def take_{stem}(value):\n    # The value may be anything that a handler was given.\n"
            f"    return {self.random.choice(('eval', 'str', 'exec'))}(value)\n"
        )

    def add(self) -> None:
        number = next(self.numbers)
        path = self.random.choice((f"src/m{number}.py", f"docs/d{number}.md", f"m{number}.py"))
        self.world.write(path, self.text(path))

    def edit(self) -> None:
        path = self.any()
        place = self.world.root / path
        before = place.read_text(errors="replace") if place.exists() else ""
        kept = before if self.random.random() < 0.5 else ""
        self.world.write(path, kept + self.text(path))

    def remove(self) -> None:
        (self.world.root / self.any()).unlink(missing_ok=True)

    def rename(self) -> None:
        place = self.world.root / self.any()
        if place.exists():
            place.rename(place.with_name(f"moved{next(self.numbers)}{place.suffix}"))

    def spoil(self) -> None:
        path = self.any()
        self.world.write(path, self.random.choice((b"\0\1" * 50, b"", b"def f(:\n\xff", b"\n" * 9)))

    def touch(self) -> None:
        path = self.world.root / self.any()
        if path.exists():
            os.utime(path)

    def commit(self) -> None:
        self.world.commit(self.random.choice(("Ann", "Bob")))

    def branch(self) -> None:
        self.world.commit("Bob")
        if self.random.random() < 0.5 or len(self.branches) == 1:
            self.branches.append(f"b{next(self.numbers)}")
            self.world.git("checkout", "-q", "-b", self.branches[-1], "HEAD~1")
        else:
            self.world.git("checkout", "-q", self.random.choice(self.branches))

    def ignore(self) -> None:
        names = self.random.choice(("*.tmp\n", "docs/\n", "src/m1*\n"))
        self.world.write(".gitignore", names)


def answers(world: World) -> list[dict[str, Any]]:
    with world.lease() as lease:
        engine = Engine.open(lease.folder)
        try:
            return [payload(engine, engine.search(read(question))) for question in QUESTIONS]
        finally:
            engine.close()


@pytest.mark.timeout(120 + 5 * STEPS)
def test_an_updated_index_is_the_same_as_a_new_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    walk = Walk(world, seed=5)
    walk.begin()
    world.build()
    steps = []

    for number in range(1, STEPS + 1):
        steps.append(walk.step())
        world.build()
        if number % 3 and number != STEPS:
            continue
        fresh = World(tmp_path, cache_name="other", clock=world.clock)
        fresh.build(incremental=False)

        assert world.content() == fresh.content(), steps
        assert answers(world) == answers(fresh), steps


@pytest.mark.timeout(120 + 5 * KILLS)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_killed_builder_leaves_the_last_index_or_the_next(tmp_path: Path) -> None:
    world = World(tmp_path)
    walk = Walk(world, seed=7)
    walk.begin()
    world.build()
    before = world.content()
    for _ in range(3):
        walk.edit()
    fresh = World(tmp_path, cache_name="other", clock=world.clock)
    fresh.build()
    after = fresh.content()
    publishing, calls = _calls_of(fresh.build)
    dice = random.Random(11)
    seen = set()

    for number in range(KILLS):
        # Half of them while it is published, which takes a hundredth of the time.
        moment = dice.randrange(publishing if number % 2 else 0, calls)
        _killed(world.build, moment)
        now = world.content()
        seen.add("before" if now == before else "after")

        assert now in (before, after), moment
        assert len(answers(world)) == len(QUESTIONS)

    world.build()
    assert "before" in seen
    assert world.content() == after
    left = {path.name for path in (world.shelf.folder / "generations").iterdir()}
    assert left == {world.lease().name}


def _calls_of(build: Callable[..., object]) -> tuple[int, int]:
    """How many calls a build makes before it publishes, and at all: its moments."""
    counted = publishing = 0

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted, publishing
        counted += event == "call"
        if event == "call" and frame.f_code is Shelf.publish.__code__:
            publishing = counted

    sys.setprofile(count)
    try:
        build(incremental=False)
    finally:
        sys.setprofile(None)
    return publishing, counted


def _killed(build: Callable[..., object], moment: int) -> None:
    """Build in another process, which is killed at a moment."""

    def run() -> None:
        builder, left = os.getpid(), moment

        def count(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal left
            left -= event == "call"
            if left < 0 and os.getpid() == builder:
                os.kill(builder, signal.SIGKILL)

        sys.setprofile(count)
        build(incremental=False)

    process = get_context("fork").Process(target=run)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
