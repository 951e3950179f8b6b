"""The reference pages say what the program does, and nothing is left out of them."""

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cleats import app
from cleats.cli import reference
from cleats.cli.main import COMMANDS, cli
from cleats.contract.errors import ErrorCode
from cleats.settings import Settings, rows

DOCS = Path(__file__).parents[1] / "docs"
PAGES = reference.pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_current(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")

    assert written == PAGES[name], "run: make docs"


def test_every_setting_tool_error_and_command_is_documented() -> None:
    assert all(f"| `{row.name}` | `{row.env}` |" in PAGES["settings.md"] for row in rows())
    assert all(f"`{code.name}` | {code.value.meaning}" in PAGES["errors.md"] for code in ErrorCode)
    assert all(f"\n### {tool.name}\n" in PAGES["tools.md"] for tool in app.catalogue(Settings()))
    assert all(f"\n## cleats {name}\n" in PAGES["commands.md"] for name in COMMANDS)


def test_every_link_between_the_pages_leads_somewhere() -> None:
    anchors = {name: _anchors(text) for name, text in PAGES.items()}

    for name, text in PAGES.items():
        for page, anchor in re.findall(r"\]\(([\w.]*)#([\w-]+)\)", text):
            assert anchor in anchors[page or name]


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {each.lower().replace(" ", "-") for each in headings} | set(
        re.findall(r'<a id="([\w-]+)">', text)
    )


def test_every_example_in_a_help_text_is_a_command_that_there_is() -> None:
    blocks = re.findall(r"```text\n(.*?)```", PAGES["commands.md"], re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    examples = [line for line in lines if re.match(r"(\$ )?cleats [a-z]", line)]

    assert len(examples) > 100
    for line in examples:
        _parsed(line)


def _parsed(line: str) -> None:
    """Read a command line as the program would, without running it."""
    words = shlex.split(re.split(r"  +|[|>…]| # ", line)[0].removeprefix("$ "))[1:]
    command: click.Command = cli
    ctx = click.Context(cli, info_name="cleats")
    while words and isinstance(command, click.Group):
        found = command.get_command(ctx, words[0])
        if found is None:
            break
        command, ctx = found, click.Context(found, info_name=words.pop(0), parent=ctx)
    if isinstance(command, click.Group):  # `cleats index` alone is `cleats index build`
        command = command.get_command(ctx, "build") or command
    command.make_parser(ctx).parse_args(words)


def test_a_cell_with_a_bar_stays_one_cell() -> None:
    made = reference.table(("a", "b"), [("x | y", "two\nlines")])

    assert made.splitlines()[2] == r"| x \| y | two lines |"


def test_checking_names_the_stale_pages_and_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    run = CliRunner().invoke

    missing = run(reference.reference, [str(folder), "--check"])
    assert not folder.exists()
    wrote = run(reference.reference, [str(folder)])
    current = run(reference.reference, [str(folder), "--check"])
    (folder / "errors.md").write_text("old")
    stale = run(reference.reference, [str(folder), "--check"])

    assert [each.exit_code for each in (missing, wrote, current, stale)] == [1, 0, 0, 1]
    assert stale.stderr == f"{folder / 'errors.md'} is out of date; run: make docs\n"
    assert (folder / "errors.md").read_text() == "old"
