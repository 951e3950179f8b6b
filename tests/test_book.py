"""Every code block of README and docs runs, every link leads somewhere, the picture is true."""

import shutil
from pathlib import Path

import pytest

from book import pages, picture, running
from book.comparing import differs
from book.pages import Page, parser
from book.site import Site
from tests.trees import is_alive
from tests.waiting import until

PAGES = {page.path: page for page in pages.every()}

pytestmark = pytest.mark.skipif(
    not Path("/bin/bash").exists(), reason="the pages are written for a POSIX shell"
)


def written(text: str) -> Page:
    return Page("page.md", tuple(parser().parse(text)))


def problems(text: str) -> list[str]:
    return [str(each) for each in running.check(written(text))]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", PAGES)
def test_the_code_on_a_page_does_what_the_page_shows(path: str) -> None:
    asks = any("curl " in token.content for token in PAGES[path].tokens if token.type == "fence")
    if asks and shutil.which("curl") is None:
        pytest.skip("the page asks with curl, which is not there")
    assert [str(problem) for problem in running.check(PAGES[path])] == []


def test_every_link_of_the_site_leads_somewhere(tmp_path: Path) -> None:
    site = Site(list(PAGES.values()))

    assert site.write(tmp_path / "site") == []
    assert (tmp_path / "site" / "index.html").read_text().startswith("<!doctype html>")


def test_the_picture_shows_what_the_program_says() -> None:
    assert picture.stale(list(picture.recorded())) == ""


# The checks themselves


def test_a_command_that_fails_or_says_something_else_is_found() -> None:
    found = problems(
        "```console\n$ echo one\ntwo\n$ false\n$ echo yes\nyes\n```\n\n```sh\nfalse\ntrue\n```\n"
    )

    assert [each.splitlines()[0] for each in found] == [
        "page.md:1: `echo one`: it is not said: two",
        "page.md:1: `false`: exit code 1, not 0",
        "page.md:9: `false`: exit code 1, not 0",
    ]


def test_commands_share_a_shell_and_files_are_there() -> None:
    text = (
        "<!-- file: made/here.json -->\n```json\n{}\n```\n\n"
        "```sh\nexport COLOUR=red\ncd made\n```\n\n"
        "```console\n$ cat here.json && echo $COLOUR \\\n  twice\n{}\nred twice\n```\n\n"
        "<!-- exit: 3 -->\n```sh\n(exit 3)\n```\n"
    )

    assert problems(text) == []


def test_data_is_parsed_and_python_is_run() -> None:
    found = problems(
        "```json\n{,}\n```\n\n```toml\na =\n```\n\n```python\nassert False\n```\n\n"
        "```python\nif\n```\n\n```yaml\na: [\n```\n"
    )

    assert [each.split(":")[1] for each in found] == ["1", "5", "13", "17", "9"]


def test_a_block_without_a_language_or_with_an_unknown_one_needs_its_reason() -> None:
    found = problems(
        "```\nx\n```\n\n```rust\nx\n```\n\n<!-- not run: no compiler -->\n```go\n```\n"
    )

    assert [each.split("; known")[0] for each in found] == [
        "page.md:1: a block of no language",
        "page.md:5: a block of rust",
    ]
    assert problems("<!-- not run: x -->\n\nWords.\n\n```go\n```\n") != []


def test_what_a_page_starts_is_ended_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "pid"

    assert problems(f"```sh\nsleep 600 & echo $! > {mark}\n```\n") == []

    until(lambda: not is_alive(int(mark.read_text())))


@pytest.mark.parametrize(
    ("shown", "said", "missing"),
    [
        ("3 files in 0.1 s", "17 files in 2.5 s", ""),
        ("a  b", "a b", ""),
        ("a\n...\nd", "a\nb\nc\nd", ""),
        ("a\n…", "a", ""),
        ("id 0f3c9a12 done", "id 77aa01bc done", ""),
        ("~/shop … new)", "/home/x/shop indexed: 10 files (10 new)", ""),
        ("a", "a\nb", "(the end)"),
        ("a\nc", "a\nb\nc", "c"),
        ("...\nz", "a\nb", "z"),
    ],
)
def test_output_is_compared_but_for_what_differs_by_nature(
    shown: str, said: str, missing: str
) -> None:
    assert differs(shown, said, "/home/x") == missing


def test_links_and_anchors_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    text = "# A b\n\n[x](#a-b) [y](#c) [z](nothing.md) [w](https://example.org) ![p](LICENSE)\n"

    assert Site([written(text)]).write(tmp_path / "site") == [
        "page.md:3: page.md has no #c",
        "page.md:3: there is no nothing.md",
    ]


def test_two_headings_of_the_same_words_have_two_anchors(tmp_path: Path) -> None:
    Site([written("# The `x` one!\n\n## Same\n\n## Same\n")]).write(tmp_path / "site")

    text = (tmp_path / "site" / "page.html").read_text()
    assert all(f'id="{each}"' in text for each in ("the-x-one", "same", "same-1"))
