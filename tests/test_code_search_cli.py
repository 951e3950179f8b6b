"""`cleats search`: one flag for each argument, and what a person sees."""

import json
import os
import re
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from cleats.cli import search as command
from cleats.cli.main import cli
from cleats.cli.search_options import PREFIX, arguments, options
from cleats.contract.binding import RESERVED
from cleats.settings import Settings
from cleats.toolsets.code.search.arguments import ARGUMENTS, BY_NAME, TOPICS, input_schema
from cleats.toolsets.code.search.request import read
from tests.index_world import World
from tests.requirements import requirement
from tests.specs import b

CORE = '''\
class Session:
    """Talks to a server."""

    def close(self) -> None:
        for socket in self.sockets:
            socket.shutdown()


def open_session(url):
    return Session(url)
'''


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("cli"))
    world.write("app/core.py", CORE)
    world.write("README.md", "# Sessions\n\nA session is closed by hand.\n")
    world.build()
    return world


def run(world: World, *words: str, color: bool = False) -> Result:
    settings = Settings(cache_dir=world.cache, project_dir=world.root, index_lint="off")
    return CliRunner().invoke(command.search, list(words), obj=settings, color=color)


FLAGS = {
    "repoPath": "--repo",
    "branchesMin": "--branches",
    "loopsMin": "--loops",
    "breaksMin": "--breaks",
    "continuesMin": "--continues",
    "churnMin": "--churn",
    "top": "-n",
    "inferredType": "--inferred-type",
    "caseTokens": "--case-tokens",
    "modifiedSince": "--modified-since",
    "metaJson": "--meta-json",
}


def test_the_table_has_every_argument_of_the_spec_and_three_of_our_own() -> None:
    specified = set(b.ARGUMENTS)

    assert set(BY_NAME) - specified == {"explain", "refresh", "workspacePath"}
    assert specified <= set(BY_NAME)


def test_the_table_names_nothing_twice_and_explains_everything() -> None:
    flags = [part for row in ARGUMENTS for part in row.flag.split("/") if part]

    assert len(BY_NAME) == len(ARGUMENTS)
    assert len(set(flags)) == len(flags)
    assert all(row.about.endswith(".") and row.topic in TOPICS for row in ARGUMENTS)
    assert not any(row.schema.get(RESERVED) for row in ARGUMENTS)
    assert all(FLAGS[name] in BY_NAME[name].flag.split("/") for name in FLAGS)


@requirement("b:search:nothing-ignored")
def test_the_schema_is_closed_and_made_of_the_table() -> None:
    schema = input_schema()

    assert schema["additionalProperties"] is False
    assert schema["required"] == ["query"]
    assert list(schema["properties"]) == [row.name for row in ARGUMENTS]


def sample(option: click.Option) -> list[str]:
    """A value that an option takes."""
    if isinstance(option.type, click.Choice):
        return [option.opts[-1], str(option.type.choices[0])]
    if option.is_flag:
        return [option.opts[-1]]
    if isinstance(option.type, click.IntRange | click.FloatRange):
        return [option.opts[-1], "1"]
    name = (option.name or "").removeprefix(PREFIX)
    special = {"type": "class", "lang": "py", "modifiedAfter": "2026-01-01", "metaJson": '{"a": 1}'}
    return [option.opts[-1], special.get(name, "-x=y")]


@requirement("b:search:flags")
def test_each_flag_reaches_the_request_as_its_argument() -> None:
    made = click.Command("search", params=[*options()], callback=lambda **given: arguments(given))

    for option in options():
        name = (option.name or "").removeprefix(PREFIX)
        given = made.main(sample(option), standalone_mode=False)

        if name in BY_NAME:
            assert list(given) == [name]
            assert read({"query": "a", **given}).text == "a"


def test_hits_are_shown_with_their_lines_and_the_words_marked(world: World) -> None:
    plain = run(world, "Session.close", "--mode", "code", "-n", "1")
    colored = run(world, "close", "--mode", "code", "-n", "1", color=True)

    assert plain.exit_code == 0
    first, *lines = plain.stdout.splitlines()
    assert first.startswith("app/core.py:4-6  method Session.close  ")
    assert lines[0] == "  4 │     def close(self) -> None:"
    assert "\x1b[" not in plain.stdout
    assert "\x1b[31m\x1b[1mclose\x1b[0m" in colored.stdout


def test_context_shows_the_lines_around(world: World) -> None:
    shown = run(world, "Session.close", "--mode", "code", "-n", "1", "--context", "1").stdout

    assert [line[6:] for line in shown.splitlines()[1:]] == ["", *CORE.splitlines()[3:6], ""]
    assert [line.split()[0] for line in shown.splitlines()[1:]] == ["3", "4", "5", "6", "7"]


def test_modes_have_headings_when_there_are_several(world: World) -> None:
    shown = run(world, "session", "--no-ann").stdout

    assert shown.index("Code\n") < shown.index("Documents\n")
    assert "README.md:1-3  section Sessions" in shown


def test_compact_is_one_line_for_each_hit(world: World) -> None:
    shown = run(world, "session", "--compact", "--no-ann").stdout.splitlines()

    assert "app/core.py:1: class Session  Talks to a server." in shown
    assert all(re.match(r"\S+:\d+: ", line) for line in shown)


def test_json_is_the_answer_of_the_tool(world: World) -> None:
    full = json.loads(run(world, "session", "--json").stdout)
    compact = json.loads(run(world, "session", "--json", "--compact").stdout)

    assert full["code"][0]["text"].startswith("class Session")
    assert "text" not in compact["code"][0]
    places = [[(hit["file"], hit["startLine"]) for hit in each["code"]] for each in (full, compact)]
    assert places[0] == places[1]
    assert "warnings" not in full


def test_explain_shows_the_points(world: World) -> None:
    shown = run(world, "Session", "--mode", "code", "-n", "1", "--explain").stdout

    assert re.search(r"^    4\.000000  symbol$", shown, re.MULTILINE)
    assert re.search(r"^    0\.0\d+  stems  rank 1, ", shown, re.MULTILINE)


def test_full_shows_the_facts(world: World) -> None:
    shown = run(world, "Session.close", "--mode", "code", "-n", "1", "--full").stdout

    assert "    calls: socket.shutdown" in shown


def test_words_of_the_command_line_are_one_query_and_values_may_begin_with_a_dash(
    world: World,
) -> None:
    assert run(world, "closed", "by", "hand", "--mode", "prose").exit_code == 0
    assert run(world, "session", "--risk-flow", "->system").exit_code == 1
    assert run(world, "--mode", "code", "--", "-nowhere").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere", "--no-ann"], "Nothing fits among "),
        (["session", "--calls", "nobody"], "Nothing: no chunk passes the filters."),
        (["session", "--calls", "nobody"], "  --calls nobody: 0 chunks have it; there is "),
        (["session", "--visibility", "pubic"], "pubic: 0 chunks have it; there is public\n"),
        (["session", "--loops", "1", "--ext", "md"], "  --ext md: 1 chunk has it\n  --loops 1: 1 "),
        (["session", "--async", "--ext", "py"], "  --async: 0 chunks have it\n"),
        (["session", "--path", "a", "--path", "b", "--lint"], "  --path a b: "),
        (["session", "--mode", "records"], "Nothing: the index has no chunk of --mode records."),
        (["nowhere AND session"], "read as a formula, because of its operators: nowhere AND"),
        (["session", "--branch", "x"], "Nothing: the index was built on no branch, not on x."),
    ],
)
def test_nothing_found_is_exit_code_one_and_a_reason(
    world: World, words: list[str], said: str
) -> None:
    result = run(world, *words)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert said in result.stderr


def test_an_index_without_findings_of_linters_says_why_it_has_none(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--lint` finds nothing in it, whatever the code is like."""
    bare = World(tmp_path)
    bare.write("app/core.py", "import os\n")
    with monkeypatch.context() as machine:  # one that has no linter
        python = tmp_path / "bin" / "python"
        python.parent.mkdir()
        python.symlink_to(Path(sys.executable).resolve())
        machine.setattr("sys.executable", str(python))
        machine.setenv("PATH", "/usr/bin:/bin")
        bare.build(lint=True)

    assert "linter" not in run(world, "session", "--calls", "nobody").stderr
    assert "CLEATS_INDEX_LINT was off" in run(world, "session", "--lint").stderr
    assert "Install one (pip install ruff)" in run(bare, "os", "--lint").stderr

    bare.build(lint=True, incremental=False)

    assert run(bare, "os", "--lint", "--mode", "code").exit_code == 0
    assert "linter" not in run(bare, "os", "--lint", "--mode", "prose").stderr


def test_an_index_without_a_history_says_so_once_when_authors_or_dates_are_asked_for(
    world: World,
) -> None:
    result = run(world, "session", "--author", "Ada", "--churn", "3", "--path", "nowhere/**")

    assert result.exit_code == 1
    assert result.stderr.count("it was built without git") == 1


def test_a_refresh_of_an_index_that_cannot_be_read_makes_a_whole_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("app/core.py", CORE)
    world.build()
    with world.lease() as lease, lease.catalogue.open("r+b") as file:
        file.seek(60)  # the number of its form
        file.write(bytes(4))

    result = run(world, "open session", "--mode", "code", "--refresh")

    assert "function open_session" in result.stdout


def test_an_index_that_may_not_be_written_to_is_searched_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.write("app/core.py", CORE)
    world.build()
    with world.lease() as lease:
        held = sorted(lease.folder.rglob("*"))
        # Only that: whoever runs the tests may write anywhere.
        monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)

        result = run(world, "open session", "--mode", "code")

        assert "function open_session" in result.stdout
        assert sorted(lease.folder.rglob("*")) == held


def test_a_shallow_clone_says_so_when_it_has_nothing_of_an_author(tmp_path: Path) -> None:
    source, world = World(tmp_path / "source"), World(tmp_path)
    source.write("old.py", "x = 1\n")
    source.git("init", "-q")
    source.commit("Ann")
    source.write("new.py", "y = 1\n")
    source.commit("Ben")
    uri = source.root.as_uri()
    source.git("clone", "-q", "--depth=1", uri, str(world.root))
    world.build()

    result = run(world, "*", "--author", "Ann", "--churn", "900")

    assert result.exit_code == 1
    assert result.stderr.count("knows only a part of the history: this is a shallow clone") == 1

    world.git("fetch", "-q", "--unshallow")
    world.build()

    assert "old.py" in run(world, "*", "--author", "Ann").stdout
    assert "shallow" not in run(world, "*", "--author", "Zoe").stderr
    assert "without git" not in run(world, "session", "--path", "nowhere/**").stderr


def test_an_empty_index_is_said_to_be_empty(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("empty.py", "")
    world.build()

    assert "Nothing: the index is empty." in run(world, "session").stderr
    assert "Nothing: the index is empty." in run(world, "session", "--type", "class").stderr


def test_notes_on_an_answer_are_printed_beside_it(world: World) -> None:
    loosened = run(world, '"shutdown sockets"', "--no-ann")
    near = run(world, "meeting", "--mode", "prose")

    assert loosened.exit_code == 0
    assert "No chunk has the words in quotes next to each other" in loosened.stderr
    assert "nearest in meaning" in near.stderr
    assert run(world, "session", "--no-ann").stderr == ""


def test_everything_is_a_star_and_nothing_is_told_what_to_write(world: World) -> None:
    everything = run(world, "*", "--type", "method", "--compact")

    assert everything.stdout.startswith("app/core.py:4: method Session.close")
    for blank in ("", "  ", "?"):
        result = run(world, blank)
        assert result.exit_code == 2
        assert "Error: query: there is no word to look for" in result.stderr
        assert "* stands for all that the filters leave" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--modified-after", "x"], "Error: --modified-after: 'x' is no date"),
        (["--type", "metho"], "Did you mean method or section"),
        (["--ext", "/(/"], "Use an extension such as py"),
        (["--loops", "1", "--path", "/elsewhere"], "Error: --path: '/elsewhere' is not in the"),
        (["--backend", "sqlite"], "Run `cleats sqlite build` first, or leave --backend out."),
    ],
)
def test_an_error_speaks_the_language_of_the_command_line(
    world: World, words: list[str], said: str
) -> None:
    result = run(world, "session", *words)

    assert result.exit_code == 2
    assert said in result.stderr
    assert "section or section" not in result.stderr


def test_an_error_in_the_query_is_pointed_at(world: World) -> None:
    result = run(world, "session AND (close")

    assert result.exit_code == 2
    assert result.stderr.splitlines()[:3] == [
        "  session AND (close",
        "              ^",
        "Error: query: a parenthesis is left open at character 13",
    ]


def test_a_bad_value_says_what_would_do(world: World) -> None:
    result = run(world, "session", "--type", "clas")

    assert result.exit_code == 2
    assert "Did you mean class" in result.stderr


def test_without_an_index_the_command_for_it_is_named_and_refresh_makes_one(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.write("a.py", "def lonely(): pass\n")

    missing = run(world, "lonely")
    made = run(world, "lonely", "--refresh")

    assert missing.exit_code == 2
    assert "cleats index" in missing.stderr
    assert made.exit_code == 0
    assert "a.py:1-1  function lonely" in made.stdout


def test_a_stale_index_is_mentioned(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("a.py", "def lonely(): pass\n")
    world.build()
    world.write("b.py", "def other(): pass\n")

    stale = run(world, "lonely")

    assert stale.exit_code == 0
    assert "1 new file(s)" in stale.stderr
    assert "--refresh" in stale.stderr


def test_help_is_grouped_by_topic() -> None:
    shown = CliRunner().invoke(cli, ["search", "--help"], obj=Settings()).output

    headings = [shown.index(f"\n{title}:\n") for title in TOPICS.values()]
    assert headings == sorted(headings)
    assert all(row.flag.split("/")[0] in shown for row in ARGUMENTS if row.flag)


def test_help_names_options_and_not_the_arguments_behind_them() -> None:
    shown = CliRunner().invoke(cli, ["search", "--help"], obj=Settings()).output

    names = [row.name for row in ARGUMENTS if not row.name.islower()]
    assert [name for name in names if re.search(rf"\b{name}\b", shown)] == []
