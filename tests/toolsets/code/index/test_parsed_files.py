"""A build that was killed keeps what it has parsed, and the next one goes on from there."""

import os
import random
import signal
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest

from cleats.toolsets.code.index import ingest
from cleats.toolsets.code.index.cache import StoredIndex
from cleats.toolsets.code.index.file_reader import ReadTask
from cleats.toolsets.code.index.generations import PARSED_FOLDER
from tests.support.indexes import IndexedRepository

FILE_COUNT = 60
KILL_COUNT = int(os.environ.get("CLEATS_TEST_KILLS", "12"))
"""Number of builders to kill; use 50 for a thorough run."""

pytestmark = [
    pytest.mark.timeout(120 + 5 * KILL_COUNT),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


@pytest.fixture
def world(tmp_path: Path) -> IndexedRepository:
    world = IndexedRepository(tmp_path)
    for number in range(FILE_COUNT):
        padding = "    # what makes the record of this file as large as the buffer of the log\n" * 40
        world.write_file(f"m{number:02}.py", f"def f{number}(x):\n{padding}    return g{number}(x, {number})\n")
    return world


def run_and_kill(world: IndexedRepository, at_file: int, *, torn_bytes: int = 0) -> None:
    """Build in another process, which is killed when this many files were written; tear off the end of the log."""

    def build() -> None:
        write_outcome, written = ingest._write_outcome, 0

        def write_or_die(*arguments: object) -> None:
            nonlocal written
            written += 1
            if written > at_file:
                os.kill(os.getpid(), signal.SIGKILL)
            write_outcome(*arguments)  # type: ignore[arg-type]

        ingest._write_outcome = write_or_die  # type: ignore[assignment]
        world.build_index()

    process = get_context("fork").Process(target=build)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    for log in (world.generation_store.folder / PARSED_FOLDER).iterdir():
        os.truncate(log, max(0, log.stat().st_size - torn_bytes))


def build_and_list_parsed(world: IndexedRepository, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Build, and return the paths that had to be parsed."""
    parsed: list[str] = []
    read_files: Callable[..., object] = ingest._read_files

    def read_and_list(tasks: list[ReadTask], *arguments: object) -> object:
        parsed.extend(task.path for task in tasks)
        return read_files(tasks, *arguments)

    monkeypatch.setattr(ingest, "_read_files", read_and_list)
    world.build_index()
    monkeypatch.undo()
    return parsed


@pytest.fixture(autouse=True)
def log_without_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write every record at once, so that a test knows which ones a kill leaves."""
    monkeypatch.setattr("cleats.toolsets.code.index.parsed_files.LOG_BUFFER_BYTES", 0)


def test_the_next_build_parses_only_what_the_killed_one_had_not(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_and_kill(world, at_file=40)
    changed = world.write_file("m05.py", "def other():\n    return 1\n")

    parsed = build_and_list_parsed(world, monkeypatch)

    assert changed.name in parsed
    assert parsed == ["m05.py", *(f"m{number}.py" for number in range(FILE_COUNT - len(parsed) + 1, FILE_COUNT))]
    assert 20 <= len(parsed) <= 21
    assert not (world.generation_store.folder / PARSED_FOLDER).exists()
    assert not world.build_index().published


def test_a_resumed_index_is_the_same_as_one_built_at_once(tmp_path: Path, world: IndexedRepository) -> None:
    fresh = IndexedRepository(tmp_path, cache_name="other", clock=world.clock)
    fresh.build_index()
    rng = random.Random(3)

    for _ in range(KILL_COUNT):
        run_and_kill(world, at_file=rng.randrange(FILE_COUNT), torn_bytes=rng.randrange(2000))
    world.build_index()

    assert world.read_content() == fresh.read_content()


def test_what_another_form_of_index_parsed_is_not_used(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_and_kill(world, at_file=40)
    world.options = world.options.__class__(workers=1, lint=False, vectors=False)

    assert len(build_and_list_parsed(world, monkeypatch)) == FILE_COUNT


def test_what_an_unfinished_build_parsed_is_garbage_that_can_be_removed(world: IndexedRepository) -> None:
    world.write_file("z.py", "x = 1\n")
    run_and_kill(world, at_file=40)
    index = StoredIndex(world.generation_store.folder)

    parsed = [leftover for leftover in index.list_leftovers() if leftover.path.name == PARSED_FOLDER]
    assert [leftover.reason for leftover in parsed] == ["unfinished"]
    with index.hold_build_lock():
        index.remove_leftover(parsed[0])
        index.remove()

    assert not world.generation_store.folder.exists()
