"""An updated index equals a new one; a killed builder leaves a complete index."""

import json
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

from cleats.toolsets.code.index import catalogue_layers, shard_plans
from cleats.toolsets.code.index.catalogue_schema import BASE_FILE_NAME
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from tests.support.indexes import IndexedRepository

WALK_STEP_COUNT = int(os.environ.get("CLEATS_TEST_WALK", "12"))
"""Number of random changes in the walk; use 200 for a thorough run."""

KILL_COUNT = int(os.environ.get("CLEATS_TEST_KILLS", "12"))
"""Number of builders to kill; use 50 for a thorough run."""

SEARCH_REQUESTS: tuple[dict[str, Any], ...] = (
    {"query": "value", "top": 20},
    {"query": "compute the total", "mode": "all", "output": "full"},
    {"query": "alpha OR beta OR gamma", "top": 50, "explain": True},
    {"query": "handler", "author": "bob"},
    {"query": "run", "riskSink": "exec", "backend": "memory"},
)

NAME_WORDS = ("alpha", "beta", "gamma", "handler", "total", "value")


class RepositoryWalk:
    """Random changes of one repository, reproducible by seed."""

    def __init__(self, world: IndexedRepository, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.branches = ["main"]
        self.numbers = iter(range(10_000))

    def begin(self) -> None:
        for _ in range(6):
            self.add()
        self.world.write_file(".gitignore", "*.tmp\n")
        self.world.run_git("init", "-q", "-b", "main")
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

    def list_files(self) -> list[str]:
        paths = self.world.root.rglob("*.*")
        return sorted(
            str(path.relative_to(self.world.root))
            for path in paths
            if path.is_file() and ".git/" not in str(path) and path.name != ".gitignore"
        )

    def pick_path(self) -> str:
        return self.random.choice(self.list_files() or ["new.py"])

    def compose_text(self, path: str) -> str:
        word, number = self.random.choice(NAME_WORDS), next(self.numbers)
        if path.endswith(".md"):
            return f"# {word} {number}\n\nWords about the {word}, to compute the total.\n"
        stem = Path(path).stem
        modules = [Path(file) for file in self.list_files() if file.endswith(".py")]
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
        self.world.write_file(path, self.compose_text(path))

    def edit(self) -> None:
        path = self.pick_path()
        file = self.world.root / path
        before = file.read_text(errors="replace") if file.exists() else ""
        prefix = before if self.random.random() < 0.5 else ""
        self.world.write_file(path, prefix + self.compose_text(path))

    def remove(self) -> None:
        (self.world.root / self.pick_path()).unlink(missing_ok=True)

    def rename(self) -> None:
        file = self.world.root / self.pick_path()
        if file.exists():
            file.rename(file.with_name(f"moved{next(self.numbers)}{file.suffix}"))

    def spoil(self) -> None:
        path = self.pick_path()
        self.world.write_file(path, self.random.choice((b"\0\1" * 50, b"", b"def f(:\n\xff", b"\n" * 9)))

    def touch(self) -> None:
        path = self.world.root / self.pick_path()
        if path.exists():
            os.utime(path)

    def commit(self) -> None:
        self.world.commit(self.random.choice(("Ann", "Bob")))

    def branch(self) -> None:
        self.world.commit("Bob")
        if self.random.random() < 0.5 or len(self.branches) == 1:
            self.branches.append(f"b{next(self.numbers)}")
            self.world.run_git("checkout", "-q", "-b", self.branches[-1], "HEAD~1")
        else:
            self.world.run_git("checkout", "-q", self.random.choice(self.branches))

    def ignore(self) -> None:
        names = self.random.choice(("*.tmp\n", "docs/\n", "src/m1*\n"))
        self.world.write_file(".gitignore", names)


def collect_answers(world: IndexedRepository) -> list[dict[str, Any]]:
    with world.lease_current() as lease:
        engine = SearchEngine.open(lease.folder)
        try:
            return [
                render_answer(engine, search_generation(engine, parse_request(question)))
                for question in SEARCH_REQUESTS
            ]
        finally:
            engine.close()


@pytest.mark.timeout(120 + 5 * WALK_STEP_COUNT)
def test_an_updated_index_is_the_same_as_a_new_one(tmp_path: Path) -> None:
    world = IndexedRepository(tmp_path)
    walk = RepositoryWalk(world, seed=5)
    walk.begin()
    world.build_index()
    steps = []

    for number in range(1, WALK_STEP_COUNT + 1):
        steps.append(walk.step())
        world.build_index()
        if number % 3 and number != WALK_STEP_COUNT:
            continue
        fresh = IndexedRepository(tmp_path, cache_name="other", clock=world.clock)
        fresh.build_index(incremental=False)

        assert world.read_content() == fresh.read_content(), steps
        assert collect_answers(world) == collect_answers(fresh), steps


@pytest.mark.timeout(120 + 5 * WALK_STEP_COUNT)
@pytest.mark.parametrize(("changes_bytes", "recent_files"), [(0, 2), (1 << 30, 1), (1 << 30, 48)])
def test_small_updates_of_a_large_repository_are_the_same_as_a_new_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes_bytes: int, recent_files: int
) -> None:
    monkeypatch.setattr(shard_plans, "MIN_RECENT_FILES_REPOSITORY", 0)
    monkeypatch.setattr(shard_plans, "MAX_RECENT_FILES", recent_files)
    monkeypatch.setattr(shard_plans, "SMALL_SHARD_FILES", 2)
    monkeypatch.setattr(catalogue_layers, "MIN_BASE_BYTES", 0)
    monkeypatch.setattr(catalogue_layers, "MIN_CHANGES_BYTES", changes_bytes)
    world = IndexedRepository(tmp_path)
    walk = RepositoryWalk(world, seed=3)
    walk.begin()
    world.build_index()
    steps, has_base, has_recent = [], [], []

    for number in range(1, WALK_STEP_COUNT + 1):
        steps.append(walk.step())
        world.build_index()
        with world.lease_current() as lease:
            has_base.append((lease.folder / BASE_FILE_NAME).exists())
            has_recent.append(json.loads((lease.folder / shard_plans.SHARD_TABLE_FILE_NAME).read_bytes())["recent"])
        if number % 4 and number != WALK_STEP_COUNT:
            continue
        fresh = IndexedRepository(tmp_path, cache_name="other", clock=world.clock)
        fresh.build_index(incremental=False)

        assert world.read_content() == fresh.read_content(), steps
        assert world.read_meta()["counts"] == fresh.read_meta()["counts"], steps
        assert collect_answers(world) == collect_answers(fresh), steps
    world.write_file("src/one.py", "def one(): pass\n")
    world.write_file("src/two.py", "def two(): pass\n")
    world.build_index()
    with world.lease_current() as lease:
        has_base.append((lease.folder / BASE_FILE_NAME).exists())
    assert world.list_paths() >= {"src/one.py", "src/two.py"}
    # Merged as soon as there is a change, or only by an update of several files.
    assert set(has_base) == {True, False}
    assert (has_base[0], has_base[1]) == (True, changes_bytes > 0)
    assert True in has_recent


@pytest.mark.timeout(120 + 5 * KILL_COUNT)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_killed_builder_leaves_the_last_index_or_the_next(tmp_path: Path) -> None:
    world = IndexedRepository(tmp_path)
    walk = RepositoryWalk(world, seed=7)
    walk.begin()
    world.build_index()
    before = world.read_content()
    for _ in range(3):
        walk.edit()
    fresh = IndexedRepository(tmp_path, cache_name="other", clock=world.clock)
    fresh.build_index()
    after = fresh.read_content()
    publishing, calls = _count_calls(fresh.build_index)
    rng = random.Random(11)
    outcomes = set()

    for number in range(KILL_COUNT):
        # Half of them while it is published, which takes a hundredth of the time.
        moment = rng.randrange(publishing if number % 2 else 0, calls)
        _kill_build(world.build_index, moment)
        now = world.read_content()
        outcomes.add("before" if now == before else "after")

        assert now in (before, after), moment
        assert len(collect_answers(world)) == len(SEARCH_REQUESTS)

    world.build_index()
    assert "before" in outcomes
    assert world.read_content() == after
    generations = {path.name for path in (world.generation_store.folder / "generations").iterdir()}
    assert generations == {world.lease_current().name}


def _count_calls(build: Callable[..., object]) -> tuple[int, int]:
    """Count the calls that a build makes before it publishes, and in all."""
    counted = publishing = 0

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted, publishing
        counted += event == "call"
        if event == "call" and frame.f_code is GenerationStore.publish.__code__:
            publishing = counted

    sys.setprofile(count)
    try:
        build(incremental=False)
    finally:
        sys.setprofile(None)
    return publishing, counted


def _kill_build(build: Callable[..., object], moment: int) -> None:
    """Build in another process and kill it after this many calls."""

    def run() -> None:
        builder, remaining = os.getpid(), moment

        def count(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal remaining
            remaining -= event == "call"
            if remaining < 0 and os.getpid() == builder:
                os.kill(builder, signal.SIGKILL)

        sys.setprofile(count)
        build(incremental=False)

    process = get_context("fork").Process(target=run)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
