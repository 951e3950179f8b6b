"""No fault in a repository or on a disk costs more than the file concerned."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import worker_pool
from cleats.system.worker_pool import LostTask, ProcessPool
from cleats.toolsets.code.analysis.extract import extract_facts
from cleats.toolsets.code.analysis.facts import Chunk, FileFacts, Mode
from cleats.toolsets.code.discovery.content import DiscoveryLimits
from cleats.toolsets.code.discovery.files import Discovery, discover_files
from cleats.toolsets.code.index import build, changes, file_reader
from cleats.toolsets.code.index.build import build_index
from cleats.toolsets.code.index.file_reader import FileContent, read_content
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.repository import Repository
from tests.support.indexes import IndexedRepository
from tests.support.paths import TESTS_FOLDER


@pytest.fixture
def world(tmp_path: Path) -> IndexedRepository:
    world = IndexedRepository(tmp_path)
    world.write_file("app/core.py", "def first():\n    return 1\n\ndef second():\n    return first()\n")
    world.write_file("app/extra.py", "class Extra:\n    pass\n")
    world.write_file("README.md", "# Title\n\nSome words about it.\n")
    return world


# Files that misbehave


def test_a_file_that_cannot_be_parsed_is_indexed_and_reported(world: IndexedRepository) -> None:
    world.write_file("broken.py", "def f(:\n" * 3)

    report = world.build_index()

    assert "broken.py" in world.list_paths()
    assert [problem.path for problem in report.problems] == ["broken.py"]
    assert report.problem_count == 1


def test_a_parser_that_crashes_costs_only_its_file(world: IndexedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(path: str, data: bytes, lang: str, mode: Mode) -> FileFacts:
        if "extra" in path and lang == "python":
            os.abort()
        return extract_facts(path, data, lang, mode)

    monkeypatch.setattr(file_reader, "extract_facts", crash)

    report = world.build_index()

    assert report.files.total == 3
    assert [problem.path for problem in report.problems] == ["app/extra.py"]
    assert "read by lines" in report.problems[0].problem
    assert world.select_rows("SELECT lang FROM files WHERE path = 'app/extra.py'") == [("python",)]
    assert not world.build_index().published


@pytest.fixture
def alarms_handled() -> Iterator[None]:
    """Handle the alarms of timers, as a program that Cleats is part of may do."""
    previous = signal.signal(signal.SIGALRM, lambda *_: None)
    yield
    signal.signal(signal.SIGALRM, previous)


@pytest.mark.usefixtures("alarms_handled")
def test_a_parser_that_hangs_costs_only_its_file(world: IndexedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(path: str, data: bytes, lang: str, mode: Mode) -> FileFacts:
        if "extra" in path and lang == "python":
            time.sleep(600)
        return extract_facts(path, data, lang, mode)

    monkeypatch.setattr(file_reader, "extract_facts", hang)
    monkeypatch.setattr(worker_pool, "TASK_TIMEOUT_SECONDS", 10.0)  # which the other files must not take

    report = world.build_index()

    assert [problem.path for problem in report.problems] == ["app/extra.py"]


def test_a_file_that_keeps_its_grammar_busy_is_read_by_lines(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (TESTS_FOLDER / "fixtures/polyglot/Desk.kt").read_bytes()
    # The Kotlin grammar makes six million empty nodes of this, which takes it a minute.
    (world.root / "torn.kt").write_bytes(source[:506] + b"\xaf\x8c<X0q\xcc" + source[539:])
    monkeypatch.setattr(worker_pool, "MIN_TASK_CPU_SECONDS", 1.0)

    report = world.build_index()

    assert [problem.path for problem in report.problems] == ["torn.kt"]
    assert "took too long; read by lines" in report.problems[0].problem
    assert world.select_rows("SELECT lang FROM files WHERE path = 'torn.kt'") == [("kotlin",)]


def test_a_reader_that_always_crashes_reports_the_file_as_unreadable(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(file_path: str) -> FileContent:
        if "extra" in file_path:
            os.abort()
        return read_content(file_path)

    monkeypatch.setattr(file_reader, "read_content", crash)

    report = world.build_index()

    assert report.skipped_reasons == {"unreadable": 1}
    assert report.files.total == 2


def test_an_error_in_our_own_code_costs_only_the_meaning_of_the_file(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, chunk: Chunk, lang: str) -> None:
        if chunk.name == "second":
            raise ZeroDivisionError

    monkeypatch.setattr(file_reader.FileReader, "_assess_risk", fail)

    report = world.build_index()

    problem = "could not be understood (ZeroDivisionError); read by lines"
    assert [(file_problem.path, file_problem.problem) for file_problem in report.problems] == [("app/core.py", problem)]


@pytest.mark.parametrize("become", ["gone", "folder", "pipe", "link", "secret"])
def test_a_file_that_turns_into_something_else_before_it_is_read_is_left_out(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch, become: str
) -> None:
    file_path = world.root / "README.md"

    def discover_and_change(root: Path, limits: DiscoveryLimits) -> Discovery:
        discovery = discover_files(root, limits)
        file_path.unlink(missing_ok=True)
        match become:
            case "folder":
                file_path.mkdir()
            case "pipe":
                os.mkfifo(file_path)
            case "link":
                file_path.symlink_to("/etc/passwd")
            case "secret":
                file_path.touch(0)
        return discovery

    monkeypatch.setattr(changes, "discover_files", discover_and_change)

    report = world.build_index()

    assert "README.md" not in world.list_paths() or become == "secret"
    assert report.files.total == 2 + (become == "secret" and os.geteuid() == 0)


def test_a_file_that_grows_while_it_is_read_is_looked_at_again(world: IndexedRepository) -> None:
    file_path = world.write_file("log.txt", "line\n")
    now = time.time_ns() + 3600 * 10**9  # however long it takes until it is read
    os.utime(file_path, ns=(now, now))

    world.build_index()

    assert world.select_rows("SELECT mtime_ns FROM files WHERE path = 'log.txt'") == [(-1,)]


# The pool


def test_results_come_in_the_order_of_the_tasks() -> None:
    def work(number: int) -> bytes:
        return str(number).encode()

    results = list(ProcessPool(work, 3).map(range(500), lambda _: 1))

    assert results == [(number, work(number)) for number in range(500)]


def test_tasks_that_end_their_process_are_lost_and_no_other_is() -> None:
    def work(number: int) -> bytes:
        if number % 7 == 3:
            os.abort()
        return b"done"

    results = list(ProcessPool(work, 2).map(range(60), lambda _: 1))

    lost = [task for task, result in results if isinstance(result, LostTask)]
    assert lost == [number for number in range(60) if number % 7 == 3]
    assert len(results) == 60


def test_no_more_is_handed_out_than_fits_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "MAX_PENDING_WEIGHT", 4000)

    def work(number: int) -> bytes:
        return bytes(number)

    results = list(ProcessPool(work, 2).map([900] * 200, lambda number: number))

    assert results == [(900, bytes(900))] * 200


# The disk


def test_a_full_disk_leaves_the_last_index_and_says_so(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.build_index().generation
    world.write_file("app/new.py", "x = 1\n")

    def fail_full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cleats.toolsets.code.index.shard_writer.write_shards", fail_full_disk)
    with pytest.raises(ToolError) as failed:
        world.build_index()

    assert failed.value.code is ErrorCode.INTERNAL
    assert failed.value.retryable
    assert "the disk is full" in failed.value.message
    assert "CLEATS_CACHE_DIR" in failed.value.hint
    assert world.lease_current().name == before
    assert {path.name for path in (world.generation_store.folder / "generations").iterdir()} == {before}


def test_a_cache_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(ToolError, match="cannot be written: that is not permitted"),
        build.explain_disk_errors(tmp_path),
    ):
        raise PermissionError(13, "Permission denied", str(tmp_path / "x"))


def test_what_an_engine_says_about_a_full_disk_is_understood(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="the disk is full"), build.explain_disk_errors(tmp_path):
        raise ValueError("An IO error occurred: 'No space left on device (os error 28)'")


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), build.explain_disk_errors(tmp_path):
        raise PermissionError(13, "Permission denied", "/elsewhere")


# Everything at once


def test_hostile_files_are_indexed_or_reported_and_none_is_fatal(world: IndexedRepository) -> None:
    hostile: dict[str, bytes] = {
        "syntax.py": b"def f(:\n    ((((\n",
        "invalid.py": b"x = '\xff\xfe\xfa'\n",
        "wide.txt": "\ufeffA few words in another encoding.\n".encode("utf-16"),
        "one_line.js": b"var a = [" + b"1," * 3_000_000 + b"1];\n",
        "large.py": b"x = 1\n" * 1_200_000,
        "deep.py": b"(" * 50_000 + b")" * 50_000 + b"\n",
        "nul.py": b"a = '\0'\n",
        "empty.py": b"",
        "blank.md": b"\n\n\n",
        "new\nline.py": b"def found(): ...\n",
        "tab\tand \"quotes'.py": b"def found(): ...\n",
        os.fsdecode(b"caf\xe9.py"): b"def found(): ...\n",
        "-rf.py": b"def found(): ...\n",
        "crlf.py": b"def found():\r\n    return 1\r\n",
        "Makefile": b"all:\n\techo $(shell rm -rf x)\n",
    }
    for path, data in hostile.items():
        world.write_file(path, data)
    (world.root / "loop").symlink_to(".")
    (world.root / "out").symlink_to("/etc")
    (world.root / "dangling.py").symlink_to("nowhere")
    os.mkfifo(world.root / "pipe.py")
    world.run_git("init", "-q")
    world.run_git("init", "-q", "module")
    world.write_file("module/inside.py", "def found(): ...\n")

    report = world.build_index()

    paths = world.list_paths()
    assert {"new\nline.py", "tab\tand \"quotes'.py", "caf%E9.py", "-rf.py", "crlf.py"} <= paths
    assert {"syntax.py", "invalid.py", "wide.txt", "deep.py", "empty.py", "Makefile"} <= paths
    assert "module/inside.py" in paths
    assert report.skipped_reasons.keys() >= {"too_large", "binary", "symlink"}
    assert report.files.total == len(paths)
    assert {"syntax.py", "invalid.py", "wide.txt"} <= {problem.path for problem in report.problems}
    assert not world.build_index().published


def test_a_cache_below_a_file_is_named(world: IndexedRepository, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = GenerationStore(tmp_path / "file" / "cache", Repository(world.root))

    with pytest.raises(ToolError, match=r"cannot be written: .*file.*: Not a directory") as failed:
        build_index(world.root, store, world.options, lambda _: None)

    assert "CLEATS_CACHE_DIR" in failed.value.hint


# Folders that are too much


def test_a_home_folder_is_indexed_only_if_a_mark_says_so(
    world: IndexedRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(world.root))

    with pytest.raises(ToolError, match="is not a repository, and it is too large to index") as failed:
        world.build_index()

    assert failed.value.code is ErrorCode.INVALID_REQUEST
    assert ".cleats.toml" in failed.value.hint
    world.write_file(".cleats.toml", "")
    assert world.build_index().published


def test_the_root_of_the_machine_is_refused(world: IndexedRepository) -> None:
    root = Path(world.root.anchor)

    with pytest.raises(ToolError, match="too large to index"):
        build_index(root, GenerationStore(world.cache, Repository(root)), world.options, lambda _: None)
