"""Nothing in a repository, and nothing that a disk does, costs more than the file it is about."""

import os
import time
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime import pool
from cleats.runtime.pool import Lost, Pool
from cleats.toolsets.code.discovery.files import Discovery, discover
from cleats.toolsets.code.discovery.reasons import Limits
from cleats.toolsets.code.extract import extract
from cleats.toolsets.code.facts import Chunk, FileFacts, Mode
from cleats.toolsets.code.indexing import failures, reading, survey
from cleats.toolsets.code.indexing.contents import Content, content
from cleats.toolsets.code.indexing.run import build
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store.generations import Shelf
from tests.index_world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write("app/core.py", "def first():\n    return 1\n\ndef second():\n    return first()\n")
    world.write("app/extra.py", "class Extra:\n    pass\n")
    world.write("README.md", "# Title\n\nSome words about it.\n")
    return world


# Files that misbehave


def test_a_file_that_cannot_be_parsed_is_indexed_and_reported(world: World) -> None:
    world.write("broken.py", "def f(:\n" * 3)

    done = world.build()

    assert "broken.py" in world.paths()
    assert [each.path for each in done.problems] == ["broken.py"]
    assert done.problem_count == 1


def test_a_parser_that_crashes_costs_only_its_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(path: str, data: bytes, lang: str, mode: Mode) -> FileFacts:
        if "extra" in path and lang == "python":
            os.abort()
        return extract(path, data, lang, mode)

    monkeypatch.setattr(reading, "extract", crash)

    done = world.build()

    assert done.files.total == 3
    assert [each.path for each in done.problems] == ["app/extra.py"]
    assert "read by lines" in done.problems[0].problem
    assert world.rows("SELECT lang FROM files WHERE path = 'app/extra.py'") == [("python",)]
    assert not world.build().published


def test_a_parser_that_hangs_costs_only_its_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(path: str, data: bytes, lang: str, mode: Mode) -> FileFacts:
        if "extra" in path and lang == "python":
            time.sleep(600)
        return extract(path, data, lang, mode)

    monkeypatch.setattr(reading, "extract", hang)
    monkeypatch.setattr(pool, "LIMIT", 10.0)  # which the other files must not take

    done = world.build()

    assert [each.path for each in done.problems] == ["app/extra.py"]


def test_a_file_that_keeps_its_grammar_busy_is_read_by_lines(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (Path(__file__).parent / "fixtures/polyglot/Desk.kt").read_bytes()
    # The Kotlin grammar makes six million empty nodes of this, which takes it a minute.
    (world.root / "torn.kt").write_bytes(whole[:506] + b"\xaf\x8c<X0q\xcc" + whole[539:])
    monkeypatch.setattr(pool, "LEAST", 1.0)

    done = world.build()

    assert [each.path for each in done.problems] == ["torn.kt"]
    assert "took too long; read by lines" in done.problems[0].problem
    assert world.rows("SELECT lang FROM files WHERE path = 'torn.kt'") == [("kotlin",)]


def test_a_reader_that_always_crashes_reports_the_file_as_unreadable(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(place: str) -> Content:
        if "extra" in place:
            os.abort()
        return content(place)

    monkeypatch.setattr(reading, "content", crash)

    done = world.build()

    assert done.skipped_reasons == {"unreadable": 1}
    assert done.files.total == 2


def test_an_error_in_our_own_code_costs_only_the_meaning_of_the_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, chunk: Chunk, lang: str) -> None:
        if chunk.name == "second":
            raise ZeroDivisionError

    monkeypatch.setattr(reading.Reader, "_assess", fail)

    done = world.build()

    problem = "could not be understood (ZeroDivisionError); read by lines"
    assert [(each.path, each.problem) for each in done.problems] == [("app/core.py", problem)]


@pytest.mark.parametrize("become", ["gone", "folder", "pipe", "link", "secret"])
def test_a_file_that_turns_into_something_else_before_it_is_read_is_left_out(
    world: World, monkeypatch: pytest.MonkeyPatch, become: str
) -> None:
    place = world.root / "README.md"

    def discover_and_change(root: Path, limits: Limits) -> Discovery:
        found = discover(root, limits)
        place.unlink(missing_ok=True)
        match become:
            case "folder":
                place.mkdir()
            case "pipe":
                os.mkfifo(place)
            case "link":
                place.symlink_to("/etc/passwd")
            case "secret":
                place.touch(0)
        return found

    monkeypatch.setattr(survey, "discover", discover_and_change)

    done = world.build()

    assert "README.md" not in world.paths() or become == "secret"
    assert done.files.total == 2 + (become == "secret" and os.geteuid() == 0)


def test_a_file_that_grows_while_it_is_read_is_looked_at_again(world: World) -> None:
    place = world.write("log.txt", "line\n")
    now = time.time_ns() + 3600 * 10**9  # however long it takes until it is read
    os.utime(place, ns=(now, now))

    world.build()

    assert world.rows("SELECT mtime_ns FROM files WHERE path = 'log.txt'") == [(-1,)]


# The pool


def test_results_come_in_the_order_of_the_tasks() -> None:
    def work(number: int) -> bytes:
        return str(number).encode()

    results = list(Pool(work, 3).map(range(500), lambda _: 1))

    assert results == [(number, work(number)) for number in range(500)]


def test_tasks_that_end_their_process_are_lost_and_no_other_is() -> None:
    def work(number: int) -> bytes:
        if number % 7 == 3:
            os.abort()
        return b"done"

    results = list(Pool(work, 2).map(range(60), lambda _: 1))

    lost = [task for task, result in results if isinstance(result, Lost)]
    assert lost == [number for number in range(60) if number % 7 == 3]
    assert len(results) == 60


def test_no_more_is_handed_out_than_fits_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WINDOW", 4000)

    def work(number: int) -> bytes:
        return bytes(number)

    results = list(Pool(work, 2).map([900] * 200, lambda number: number))

    assert results == [(900, bytes(900))] * 200


# The disk


def test_a_full_disk_leaves_the_last_index_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.build().generation
    world.write("app/new.py", "x = 1\n")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cleats.toolsets.code.indexing.writing.parts.write", full)
    with pytest.raises(ToolError) as failed:
        world.build()

    assert failed.value.code is ErrorCode.INTERNAL
    assert failed.value.retryable
    assert "the disk is full" in failed.value.message
    assert "CLEATS_CACHE_DIR" in failed.value.hint
    assert world.lease().name == before
    assert {path.name for path in (world.shelf.folder / "generations").iterdir()} == {before}


def test_a_cache_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(ToolError, match="cannot be written: that is not permitted"),
        failures.explained(tmp_path),
    ):
        raise PermissionError(13, "Permission denied", str(tmp_path / "x"))


def test_what_an_engine_says_about_a_full_disk_is_understood(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="the disk is full"), failures.explained(tmp_path):
        raise ValueError("An IO error occurred: 'No space left on device (os error 28)'")


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), failures.explained(tmp_path):
        raise PermissionError(13, "Permission denied", "/elsewhere")


# Everything at once


def test_hostile_files_are_indexed_or_reported_and_none_is_fatal(world: World) -> None:
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
        world.write(path, data)
    (world.root / "loop").symlink_to(".")
    (world.root / "out").symlink_to("/etc")
    (world.root / "dangling.py").symlink_to("nowhere")
    os.mkfifo(world.root / "pipe.py")
    world.git("init", "-q")
    world.git("init", "-q", "module")
    world.write("module/inside.py", "def found(): ...\n")

    done = world.build()

    seen = world.paths()
    assert {"new\nline.py", "tab\tand \"quotes'.py", "caf%E9.py", "-rf.py", "crlf.py"} <= seen
    assert {"syntax.py", "invalid.py", "wide.txt", "deep.py", "empty.py", "Makefile"} <= seen
    assert "module/inside.py" in seen
    assert done.skipped_reasons.keys() >= {"too_large", "binary", "symlink"}
    assert done.files.total == len(seen)
    assert {"syntax.py", "invalid.py", "wide.txt"} <= {each.path for each in done.problems}
    assert not world.build().published


def test_a_cache_below_a_file_is_named(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shelf = Shelf(tmp_path / "file" / "cache", Repository(world.root))

    with pytest.raises(ToolError, match=r"cannot be written: .*file.*: Not a directory") as failed:
        build(world.root, shelf, world.options, lambda _: None)

    assert "CLEATS_CACHE_DIR" in failed.value.hint


# Folders that are too much


def test_a_home_folder_is_indexed_only_if_a_mark_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(world.root))

    with pytest.raises(ToolError, match="is no repository, and too much to index") as failed:
        world.build()

    assert failed.value.code is ErrorCode.INVALID_REQUEST
    assert ".cleats.toml" in failed.value.hint
    world.write(".cleats.toml", "")
    assert world.build().published


def test_the_root_of_the_machine_is_refused(world: World) -> None:
    root = Path(world.root.anchor)

    with pytest.raises(ToolError, match="too much to index"):
        build(root, Shelf(world.cache, Repository(root)), world.options, lambda _: None)
