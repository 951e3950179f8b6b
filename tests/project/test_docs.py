"""Tests of the reference pages: they describe what the program does, completely."""

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from book import reference
from cleats import app
from cleats.cli.main import COMMANDS_BY_NAME, cli
from cleats.contract.errors import ErrorCode
from cleats.settings import SETTINGS_BY_NAME, Settings
from tests.support.paths import REPOSITORY_ROOT

DOCS_FOLDER = REPOSITORY_ROOT / "docs"
REFERENCE_PAGES = reference.render_pages()


@pytest.mark.parametrize("name", REFERENCE_PAGES)
def test_a_reference_page_is_current(name: str) -> None:
    page_text = (DOCS_FOLDER / name).read_text(encoding="utf-8")

    assert page_text == REFERENCE_PAGES[name], "run: make docs"


def test_every_setting_tool_error_and_command_is_documented() -> None:
    assert all(
        f"| `{row.name}` | `{row.variable}` |" in REFERENCE_PAGES["settings.md"] for row in SETTINGS_BY_NAME.values()
    )
    assert all(f"`{code.name}` | {code.value.meaning}" in REFERENCE_PAGES["errors.md"] for code in ErrorCode)
    assert all(f"\n### {tool.name}\n" in REFERENCE_PAGES["tools.md"] for tool in app.build_registry(Settings()))
    assert all(f"\n## cleats {name}\n" in REFERENCE_PAGES["commands.md"] for name in COMMANDS_BY_NAME)


def test_every_link_between_the_pages_leads_somewhere() -> None:
    anchors = {name: _list_anchors(text) for name, text in REFERENCE_PAGES.items()}

    for name, text in REFERENCE_PAGES.items():
        for page, anchor in re.findall(r"\]\(([\w.]*)#([\w-]+)\)", text):
            assert anchor in anchors[page or name]


def _list_anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {heading.lower().replace(" ", "-") for heading in headings} | set(re.findall(r'<a id="([\w-]+)">', text))


def test_every_example_in_a_help_text_is_a_command_that_there_is() -> None:
    blocks = re.findall(r"```text\n(.*?)```", REFERENCE_PAGES["commands.md"], re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    examples = [line for line in lines if re.match(r"(\$ )?cleats [a-z]", line)]

    assert len(examples) > 100
    for line in examples:
        _parse_command_line(line)


def _parse_command_line(line: str) -> None:
    """Parse a command line as the program would, without running it."""
    words = shlex.split(re.split(r"  +|[|>…]| # ", line)[0].removeprefix("$ "))[1:]
    command: click.Command = cli
    ctx = click.Context(cli, info_name="cleats")
    while words and isinstance(command, click.Group):
        subcommand = command.get_command(ctx, words[0])
        if subcommand is None:
            break
        command, ctx = subcommand, click.Context(subcommand, info_name=words.pop(0), parent=ctx)
    if isinstance(command, click.Group):  # `cleats index` alone is `cleats index build`
        command = command.get_command(ctx, "build") or command
    command.make_parser(ctx).parse_args(words)


def test_a_cell_with_a_bar_stays_one_cell() -> None:
    markdown = reference.render_table(("a", "b"), [("x | y", "two\nlines")])

    assert markdown.splitlines()[2] == r"| x \| y | two lines |"


def test_checking_names_the_stale_pages_and_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    run = CliRunner().invoke

    missing = run(reference.reference, [str(folder), "--check"])
    assert not folder.exists()
    wrote = run(reference.reference, [str(folder)])
    current = run(reference.reference, [str(folder), "--check"])
    (folder / "errors.md").write_text("old")
    stale = run(reference.reference, [str(folder), "--check"])

    assert [process.exit_code for process in (missing, wrote, current, stale)] == [1, 0, 0, 1]
    assert stale.stderr == f"{folder / 'errors.md'} is out of date; run: make docs\n"
    assert (folder / "errors.md").read_text() == "old"
