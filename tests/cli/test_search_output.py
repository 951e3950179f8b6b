"""`cleats search` and `cleats index` for programs and in terminals: JSON, and complete lines."""

import json
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from cleats.cli import hit_printer, output
from cleats.cli import index as indexing
from cleats.cli import search as command
from cleats.cli.output import escape_controls, format_count
from cleats.settings import make_settings
from tests.support.indexes import IndexedRepository

LONG_LINE = "x = '" + "very " * 60 + "long'"
FUNCTION_BODY = "".join(f"    value_{number} = {number}\n" for number in range(80))


@pytest.fixture
def world(tmp_path: Path) -> IndexedRepository:
    world = IndexedRepository(tmp_path)
    world.write_file("a.py", f"def lonely():\n    {LONG_LINE}\n{FUNCTION_BODY}")
    return world


def invoke_command(world: IndexedRepository, command_object: click.Command, *words: str) -> Result:
    settings = make_settings(cache_dir=world.cache, project_dir=world.root, index_lint="off")
    return CliRunner().invoke(command_object, list(words), obj=settings)


def test_an_error_is_json_on_stdout_when_json_was_asked_for(world: IndexedRepository) -> None:
    missing = invoke_command(world, command.search, "lonely", "--json")
    wrong = invoke_command(world, command.search, "lonely", "--type", "clas", "--json")
    nowhere = invoke_command(world, indexing.index, "no/such/folder", "--json")

    errors = [json.loads(answer.stdout) for answer in (missing, wrong, nowhere)]
    assert [answer["ok"] for answer in errors] == [False] * 3
    assert [answer["error"]["code"] for answer in errors] == [
        "NO_INDEX",
        "INVALID_REQUEST",
        "INVALID_REQUEST",
    ]
    assert [answer.exit_code for answer in (missing, wrong, nowhere)] == [2, 2, 2]
    assert missing.stderr == wrong.stderr == nowhere.stderr == ""


def test_an_index_that_lacks_a_part_is_to_be_built_in_full(world: IndexedRepository) -> None:
    world.build_index()
    with world.lease_current() as lease:
        shutil.rmtree(lease.folder / "words")

    result = invoke_command(world, command.search, "lonely")

    assert result.exit_code == 2
    assert "Run `cleats index --full`" in result.stderr


def test_a_stale_index_is_a_warning_in_the_json(world: IndexedRepository) -> None:
    world.build_index()
    world.write_file("b.py", "def other(): pass\n")

    result = invoke_command(world, command.search, "lonely", "--json")

    [warning] = json.loads(result.stdout)["warnings"]
    assert warning["code"] == "index_stale"
    assert "--refresh" in warning["message"]
    assert result.stderr == ""


def test_only_a_terminal_cuts_lines(world: IndexedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    world.build_index()

    piped = invoke_command(world, command.search, "very long", "--mode", "code")
    monkeypatch.setattr(hit_printer, "limit_to_terminal", lambda columns: columns)
    output = invoke_command(world, command.search, "very long", "--mode", "code")

    assert LONG_LINE in piped.stdout
    assert "…" not in piped.stdout
    assert LONG_LINE not in output.stdout
    assert "…" in output.stdout


def test_full_shows_the_whole_text_of_a_hit(world: IndexedRepository) -> None:
    world.build_index()

    output = invoke_command(world, command.search, "lonely", "--mode", "code", "--full").stdout
    short = invoke_command(world, command.search, "lonely", "--mode", "code").stdout

    assert all(f"value_{number} = " in output for number in range(80))
    assert "value_70" not in short


def test_control_characters_of_a_path_stay_on_its_line(world: IndexedRepository) -> None:
    world.write_file("odd\nname\x1b[31m.py", "def odd(): pass\n")
    world.build_index()

    output = invoke_command(world, command.search, "odd", "--mode", "code", "-n", "1", "--compact").stdout

    assert output.startswith("odd\\nname\\x1b[31m.py:1: function odd")
    assert len(output.splitlines()) == 1


def test_what_can_be_printed_is_left_as_it_is() -> None:
    assert escape_controls("a b/é漢.py") == "a b/é漢.py"
    assert escape_controls("a\r\tb") == "a\\r\\tb"


def test_one_of_a_thing_is_not_several(world: IndexedRepository) -> None:
    first = invoke_command(world, indexing.index).stdout
    second_output = invoke_command(world, indexing.index).stdout

    assert format_count(1, "file") == "1 file"
    assert format_count(1200, "file") == "1,200 files"
    assert ": 1 file (1 new), " in first
    assert "is up to date: 1 file, " in second_output


@pytest.mark.parametrize(("terminal", "expected"), [(True, 80), (False, None)])
def test_lines_have_an_end_only_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, expected: int | None
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)

    assert output.limit_to_terminal(80) == expected
