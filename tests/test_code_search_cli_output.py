"""`cleats search` and `cleats index` for programs and in terminals: JSON, and whole lines."""

import json
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from cleats.cli import hits, printing
from cleats.cli import index as indexing
from cleats.cli import search as command
from cleats.cli.printing import counted, escaped
from cleats.settings import Settings
from tests.index_world import World

LONG = "x = '" + "very " * 60 + "long'"
BODY = "".join(f"    value_{number} = {number}\n" for number in range(80))


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write("a.py", f"def lonely():\n    {LONG}\n{BODY}")
    return world


def invoked(world: World, made: click.Command, *words: str) -> Result:
    settings = Settings(cache_dir=world.cache, project_dir=world.root, index_lint="off")
    return CliRunner().invoke(made, list(words), obj=settings)


def test_an_error_is_json_on_stdout_when_json_was_asked_for(world: World) -> None:
    missing = invoked(world, command.search, "lonely", "--json")
    wrong = invoked(world, command.search, "lonely", "--type", "clas", "--json")
    nowhere = invoked(world, indexing.index, "no/such/folder", "--json")

    errors = [json.loads(each.stdout) for each in (missing, wrong, nowhere)]
    assert [each["ok"] for each in errors] == [False] * 3
    assert [each["error"]["code"] for each in errors] == [
        "NO_INDEX",
        "INVALID_REQUEST",
        "INVALID_REQUEST",
    ]
    assert [each.exit_code for each in (missing, wrong, nowhere)] == [2, 2, 2]
    assert missing.stderr == wrong.stderr == nowhere.stderr == ""


def test_an_index_that_lacks_a_part_is_to_be_built_in_full(world: World) -> None:
    world.build()
    with world.lease() as lease:
        shutil.rmtree(lease.folder / "words")

    result = invoked(world, command.search, "lonely")

    assert result.exit_code == 2
    assert "Run `cleats index --full`" in result.stderr


def test_a_stale_index_is_a_warning_in_the_json(world: World) -> None:
    world.build()
    world.write("b.py", "def other(): pass\n")

    result = invoked(world, command.search, "lonely", "--json")

    [warning] = json.loads(result.stdout)["warnings"]
    assert warning["code"] == "index_stale"
    assert "--refresh" in warning["message"]
    assert result.stderr == ""


def test_only_a_terminal_cuts_lines(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.build()

    piped = invoked(world, command.search, "very long", "--mode", "code")
    monkeypatch.setattr(hits, "room", lambda columns: columns)
    shown = invoked(world, command.search, "very long", "--mode", "code")

    assert LONG in piped.stdout
    assert "…" not in piped.stdout
    assert LONG not in shown.stdout
    assert "…" in shown.stdout


def test_full_shows_the_whole_text_of_a_hit(world: World) -> None:
    world.build()

    shown = invoked(world, command.search, "lonely", "--mode", "code", "--full").stdout
    short = invoked(world, command.search, "lonely", "--mode", "code").stdout

    assert all(f"value_{number} = " in shown for number in range(80))
    assert "value_70" not in short


def test_control_characters_of_a_path_stay_on_its_line(world: World) -> None:
    world.write("odd\nname\x1b[31m.py", "def odd(): pass\n")
    world.build()

    shown = invoked(world, command.search, "odd", "--mode", "code", "-n", "1", "--compact").stdout

    assert shown.startswith("odd\\nname\\x1b[31m.py:1: function odd")
    assert len(shown.splitlines()) == 1


def test_what_can_be_printed_is_left_as_it_is() -> None:
    assert escaped("a b/é漢.py") == "a b/é漢.py"
    assert escaped("a\r\tb") == "a\\r\\tb"


def test_one_of_a_thing_is_not_several(world: World) -> None:
    first = invoked(world, indexing.index).stdout
    again = invoked(world, indexing.index).stdout

    assert counted(1, "file") == "1 file"
    assert counted(1200, "file") == "1,200 files"
    assert ": 1 file (1 new), " in first
    assert "is up to date: 1 file, " in again


@pytest.mark.parametrize(("terminal", "left"), [(True, 80), (False, None)])
def test_lines_have_an_end_only_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, left: int | None
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)

    assert printing.room(80) == left
