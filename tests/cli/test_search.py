"""`cleats search`: one flag for each argument, and the output that a person sees."""

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
from cleats.cli.search import PARAMETER_PREFIX, build_options, collect_arguments
from cleats.contract.arguments import RESERVED_KEYWORD
from cleats.runtime.installation import format_install_command
from cleats.settings import Settings, make_settings
from cleats.toolsets.code.query.arguments import ARGUMENTS_BY_NAME, SEARCH_ARGUMENTS, TOPIC_TITLES, make_input_schema
from cleats.toolsets.code.query.request import parse_request
from tests.specs import b
from tests.support.indexes import IndexedRepository
from tests.support.requirements import requirement

CORE_SOURCE = '''\
class Session:
    """Talks to a server."""

    def close(self) -> None:
        for socket in self.sockets:
            socket.shutdown()


def open_session(url):
    return Session(url)
'''


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> IndexedRepository:
    world = IndexedRepository(tmp_path_factory.mktemp("cli"))
    world.write_file("app/core.py", CORE_SOURCE)
    world.write_file("README.md", "# Sessions\n\nA session is closed by hand.\n")
    world.build_index()
    return world


def run_search(world: IndexedRepository, *words: str, color: bool = False) -> Result:
    settings = make_settings(cache_dir=world.cache, project_dir=world.root, index_lint="off")
    return CliRunner().invoke(command.search, list(words), obj=settings, color=color)


FLAG_BY_ARGUMENT = {
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

    assert set(ARGUMENTS_BY_NAME) - specified == {"explain", "refresh", "workspacePath"}
    assert specified <= set(ARGUMENTS_BY_NAME)


def test_the_table_names_nothing_twice_and_explains_everything() -> None:
    flags = [part for row in SEARCH_ARGUMENTS for part in row.flag.split("/") if part]

    assert len(ARGUMENTS_BY_NAME) == len(SEARCH_ARGUMENTS)
    assert len(set(flags)) == len(flags)
    assert all(row.description.endswith((".", "]")) and row.topic in TOPIC_TITLES for row in SEARCH_ARGUMENTS)
    assert not any(row.schema.get(RESERVED_KEYWORD) for row in SEARCH_ARGUMENTS)
    assert all(FLAG_BY_ARGUMENT[name] in ARGUMENTS_BY_NAME[name].flag.split("/") for name in FLAG_BY_ARGUMENT)


def test_the_schema_is_closed_and_made_of_the_table() -> None:
    schema = make_input_schema()

    assert schema["additionalProperties"] is False
    assert schema["required"] == ["query"]
    assert list(schema["properties"]) == [row.name for row in SEARCH_ARGUMENTS]


def make_option_words(option: click.Option) -> list[str]:
    """Return the words that give an option a valid value."""
    if isinstance(option.type, click.Choice):
        return [option.opts[-1], str(option.type.choices[0])]
    if option.is_flag:
        return [option.opts[-1]]
    if isinstance(option.type, click.IntRange | click.FloatRange):
        return [option.opts[-1], "1"]
    name = (option.name or "").removeprefix(PARAMETER_PREFIX)
    special = {"type": "class", "lang": "py", "modifiedAfter": "2026-01-01", "metaJson": '{"a": 1}'}
    return [option.opts[-1], special.get(name, "-x=y")]


@requirement("b:search:flags")
def test_each_flag_reaches_the_request_as_its_argument() -> None:
    command_line = click.Command(
        "search", params=[*build_options()], callback=lambda **values: collect_arguments(values)
    )

    for option in build_options():
        name = (option.name or "").removeprefix(PARAMETER_PREFIX)
        values = command_line.main(make_option_words(option), standalone_mode=False)

        if name in ARGUMENTS_BY_NAME:
            assert list(values) == [name]
            assert parse_request({"query": "a", **values}).text == "a"


def test_options_of_find_work_for_search_too(world: IndexedRepository) -> None:
    search_options = ("--type", "function", "--lang", "python", "--top", "3")
    find_options = ("--kind", "function", "--language", "python", "--limit", "3")

    assert run_search(world, "*", *find_options).stdout == run_search(world, "*", *search_options).stdout != ""


def test_hits_are_shown_with_their_lines_and_the_words_marked(world: IndexedRepository) -> None:
    plain = run_search(world, "Session.close", "--mode", "code", "-n", "1")
    colored = run_search(world, "close", "--mode", "code", "-n", "1", color=True)

    assert plain.exit_code == 0
    first, *lines = plain.stdout.splitlines()
    assert first == "app/core.py:4-6  method Session.close"
    assert lines[0] == "  4 │     def close(self) -> None:"
    assert "\x1b[" not in plain.stdout
    assert "\x1b[31m\x1b[1mclose\x1b[0m" in colored.stdout


def test_context_shows_the_lines_around(world: IndexedRepository) -> None:
    output = run_search(world, "Session.close", "--mode", "code", "-n", "1", "--context", "1").stdout

    assert [line[6:] for line in output.splitlines()[1:]] == ["", *CORE_SOURCE.splitlines()[3:6], ""]
    assert [line.split()[0] for line in output.splitlines()[1:]] == ["3", "4", "5", "6", "7"]


def test_hits_of_all_modes_are_one_list_with_the_best_first_and_top_counts_them_together(
    world: IndexedRepository,
) -> None:
    answer = json.loads(run_search(world, "session", "--no-ann", "--json").stdout)
    scores = {hit["name"]: hit["score"] for mode in ("code", "prose") for hit in answer[mode]}
    expected = sorted(scores, key=lambda name: -scores[name])

    listed = run_search(world, "session", "--no-ann", "--compact").stdout.splitlines()
    two = run_search(world, "session", "--no-ann", "--top", "2").stdout

    names = [line.split(": ", 1)[1].split()[1] for line in listed]
    assert names == expected
    assert {"Sessions", "Session"} <= set(names)
    assert re.findall(r"^\S+:\d+-\d+  \w+ (\S+)$", two, re.MULTILINE) == expected[:2]


def test_the_line_that_a_filter_is_about_is_shown(world: IndexedRepository) -> None:
    output = run_search(world, "*", "--calls", "shutdown", "--type", "method").stdout

    assert output.splitlines()[-1] == "  6 │             socket.shutdown()"


def test_a_flow_of_risk_is_shown_with_its_lines(tmp_path: Path) -> None:
    world = IndexedRepository(tmp_path)
    world.write_file("run.py", "import os\n\n\ndef run():\n    text = input()\n    word = 1\n    os.system(text)\n")
    world.build_index()

    output = run_search(world, "*", "--type", "function", "--risk-flow", "->").stdout.splitlines()

    assert output == [
        "run.py:4-7  function run",
        "  high risk: stdin (line 5) → os.system (line 7)",
        "  4 │ def run():",
        "  5 │     text = input()",
        "    ⋮",
        "  7 │     os.system(text)",
    ]


def test_compact_is_one_line_for_each_hit(world: IndexedRepository) -> None:
    output = run_search(world, "session", "--compact", "--no-ann").stdout.splitlines()

    assert "app/core.py:1: class Session  Talks to a server." in output
    assert all(re.match(r"\S+:\d+: ", line) for line in output)


def test_json_is_the_answer_of_the_tool(world: IndexedRepository) -> None:
    full = json.loads(run_search(world, "session", "--json").stdout)
    compact = json.loads(run_search(world, "session", "--json", "--compact").stdout)

    assert full["code"][0]["text"].startswith("class Session")
    assert "text" not in compact["code"][0]
    locations = [[(hit["file"], hit["startLine"]) for hit in answer["code"]] for answer in (full, compact)]
    assert locations[0] == locations[1]
    assert "warnings" not in full


def test_explain_shows_the_points(world: IndexedRepository) -> None:
    output = run_search(world, "Session", "--mode", "code", "-n", "1", "--explain").stdout

    assert re.match(r"app/core\.py:1-6  class Session  4\.\d+\n", output)
    assert re.search(r"^    4\.000000  symbol$", output, re.MULTILINE)
    assert re.search(r"^    0\.0\d+  stems  rank 1, ", output, re.MULTILINE)


def test_full_shows_the_facts(world: IndexedRepository) -> None:
    output = run_search(world, "Session.close", "--mode", "code", "-n", "1", "--full").stdout

    assert "    calls: socket.shutdown" in output


def test_words_of_the_command_line_are_one_query_and_values_may_begin_with_a_dash(
    world: IndexedRepository,
) -> None:
    assert run_search(world, "closed", "by", "hand", "--mode", "prose").exit_code == 0
    assert run_search(world, "session", "--risk-flow", "->system").exit_code == 1
    assert run_search(world, "--mode", "code", "--", "-nowhere").exit_code == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nowhere", "--no-ann"], "No match among "),
        (["session", "--calls", "nobody"], "No results: no chunk passes the filters."),
        (["session", "--calls", "nobody"], "  --calls nobody: 0 chunks match it; there is "),
        (["session", "--visibility", "pubic"], "pubic: 0 chunks match it; there is public\n"),
        (["session", "--loops", "1", "--ext", "md"], "  --ext md: 1 chunk has it\n  --loops 1: 1 "),
        (["session", "--async", "--ext", "py"], "  --async: 0 chunks match it\n"),
        (["session", "--path", "a", "--path", "b", "--lint"], "  --path a b: "),
        (["session", "--mode", "records"], "No results: the index has no chunk of --mode records."),
        (["nowhere AND session"], "read as a formula, because of its operators: nowhere AND"),
        (["session", "--branch", "x"], "No results: the index was built without a branch, not from x."),
    ],
)
def test_nothing_found_is_exit_code_one_and_a_reason(world: IndexedRepository, words: list[str], reason: str) -> None:
    result = run_search(world, *words)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert reason in result.stderr


def test_an_index_without_findings_of_linters_says_why_it_has_none(
    world: IndexedRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the reason given when `--lint` finds nothing, whatever the code is like."""
    bare = IndexedRepository(tmp_path)
    bare.write_file("app/core.py", "import os\n")
    with monkeypatch.context() as machine:  # one that has no linter
        python = tmp_path / "bin" / "python"
        python.parent.mkdir()
        python.symlink_to(Path(sys.executable).resolve())
        machine.setattr("sys.executable", str(python))
        machine.setenv("PATH", "/usr/bin:/bin")
        bare.build_index(lint=True)

    assert "linter" not in run_search(world, "session", "--calls", "nobody").stderr
    assert "CLEATS_INDEX_LINT was off" in run_search(world, "session", "--lint").stderr
    assert format_install_command("ruff") in run_search(bare, "os", "--lint").stderr

    bare.build_index(lint=True, incremental=False)

    assert run_search(bare, "os", "--lint", "--mode", "code").exit_code == 0
    assert "linter" not in run_search(bare, "os", "--lint", "--mode", "prose").stderr


def test_an_index_without_a_history_says_so_once_when_authors_or_dates_are_asked_for(
    world: IndexedRepository,
) -> None:
    result = run_search(world, "session", "--author", "Ada", "--churn", "3", "--path", "nowhere/**")

    assert result.exit_code == 1
    assert result.stderr.count("it was built without git") == 1


def test_a_refresh_of_an_index_that_cannot_be_read_makes_a_whole_one(tmp_path: Path) -> None:
    world = IndexedRepository(tmp_path)
    world.write_file("app/core.py", CORE_SOURCE)
    world.build_index()
    with world.lease_current() as lease, lease.catalogue_path.open("r+b") as file:
        file.seek(60)  # the number of its form
        file.write(bytes(4))

    result = run_search(world, "open session", "--mode", "code", "--refresh")

    assert "function open_session" in result.stdout


def test_an_index_that_may_not_be_written_to_is_searched_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = IndexedRepository(tmp_path)
    world.write_file("app/core.py", CORE_SOURCE)
    world.build_index()
    with world.lease_current() as lease:
        files_before = sorted(lease.folder.rglob("*"))
        # Only that: whoever runs the tests may write anywhere.
        monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)

        result = run_search(world, "open session", "--mode", "code")

        assert "function open_session" in result.stdout
        assert sorted(lease.folder.rglob("*")) == files_before


def test_a_shallow_clone_says_so_when_it_has_nothing_of_an_author(tmp_path: Path) -> None:
    source, world = IndexedRepository(tmp_path / "source"), IndexedRepository(tmp_path)
    source.write_file("old.py", "x = 1\n")
    source.run_git("init", "-q")
    source.commit("Ann")
    source.write_file("new.py", "y = 1\n")
    source.commit("Ben")
    uri = source.root.as_uri()
    source.run_git("clone", "-q", "--depth=1", uri, str(world.root))
    world.build_index()

    result = run_search(world, "*", "--author", "Ann", "--churn", "900")

    assert result.exit_code == 1
    assert result.stderr.count("knows only a part of the history: this is a shallow clone") == 1

    world.run_git("fetch", "-q", "--unshallow")
    world.build_index()

    assert "old.py" in run_search(world, "*", "--author", "Ann").stdout
    assert "shallow" not in run_search(world, "*", "--author", "Zoe").stderr
    assert "without git" not in run_search(world, "session", "--path", "nowhere/**").stderr


def test_an_empty_index_is_said_to_be_empty(tmp_path: Path) -> None:
    world = IndexedRepository(tmp_path)
    world.write_file("empty.py", "")
    world.build_index()

    assert "No results: the index is empty." in run_search(world, "session").stderr
    assert "No results: the index is empty." in run_search(world, "session", "--type", "class").stderr


def test_notes_on_an_answer_are_printed_beside_it(world: IndexedRepository) -> None:
    loosened = run_search(world, '"shutdown sockets"', "--no-ann")
    near = run_search(world, "meeting", "--mode", "prose")

    assert loosened.exit_code == 0
    assert "No chunk has the words in quotes next to each other" in loosened.stderr
    assert "nearest in meaning" in near.stderr
    assert run_search(world, "session", "--no-ann").stderr == ""


def test_everything_is_a_star_and_nothing_is_told_what_to_write(world: IndexedRepository) -> None:
    everything = run_search(world, "*", "--type", "method", "--compact")

    assert everything.stdout.startswith("app/core.py:4: method Session.close")
    for blank in ("", "  ", "?"):
        result = run_search(world, blank)
        assert result.exit_code == 2
        assert "Error: query: the query has no word to search for" in result.stderr
        assert "* matches everything that passes the filters" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--modified-after", "x"], "Error: --modified-after: 'x' is not a valid date"),
        (["--type", "metho"], "Did you mean method or section"),
        (["--ext", "/(/"], "Use an extension such as py"),
        (["--loops", "1", "--path", "/elsewhere"], "Error: --path: '/elsewhere' is not in the"),
        (["--backend", "sqlite"], "Run `cleats sqlite build` first, or omit --backend."),
    ],
)
def test_an_error_speaks_the_language_of_the_command_line(
    world: IndexedRepository, words: list[str], message: str
) -> None:
    result = run_search(world, "session", *words)

    assert result.exit_code == 2
    assert message in result.stderr
    assert "section or section" not in result.stderr


def test_an_error_in_the_query_is_pointed_at(world: IndexedRepository) -> None:
    result = run_search(world, "session AND (close")

    assert result.exit_code == 2
    assert result.stderr.splitlines()[:3] == [
        "  session AND (close",
        "              ^",
        "Error: query: a parenthesis is left open at character 13",
    ]


def test_a_bad_value_says_what_would_do(world: IndexedRepository) -> None:
    result = run_search(world, "session", "--type", "clas")

    assert result.exit_code == 2
    assert "Did you mean class" in result.stderr


def test_without_an_index_the_command_for_it_is_named_and_refresh_makes_one(
    tmp_path: Path,
) -> None:
    world = IndexedRepository(tmp_path)
    world.write_file("a.py", "def lonely(): pass\n")

    missing = run_search(world, "lonely")
    refreshed = run_search(world, "lonely", "--refresh")

    assert missing.exit_code == 2
    assert "cleats index" in missing.stderr
    assert refreshed.exit_code == 0
    assert "a.py:1-1  function lonely" in refreshed.stdout


def test_a_stale_index_is_mentioned(tmp_path: Path) -> None:
    world = IndexedRepository(tmp_path)
    world.write_file("a.py", "def lonely(): pass\n")
    world.build_index()
    world.write_file("b.py", "def other(): pass\n")

    stale = run_search(world, "lonely")

    assert stale.exit_code == 0
    assert "1 new file(s)" in stale.stderr
    assert "--refresh" in stale.stderr


def test_help_is_grouped_by_topic() -> None:
    output = CliRunner().invoke(cli, ["search", "--help"], obj=Settings()).output

    headings = [output.index(f"\n{title}:\n") for title in TOPIC_TITLES.values()]
    assert headings == sorted(headings)
    assert all(row.flag.split("/")[0] in output for row in SEARCH_ARGUMENTS if row.flag)


def test_help_names_options_and_not_the_arguments_behind_them() -> None:
    output = CliRunner().invoke(cli, ["search", "--help"], obj=Settings()).output

    names = [row.name for row in SEARCH_ARGUMENTS if not row.name.islower()]
    assert [name for name in names if re.search(rf"\b{name}\b", output)] == []
