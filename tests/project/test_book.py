"""Every code block of README and docs runs, every link resolves, and the picture is accurate."""

import json
import shutil
from pathlib import Path

import pytest

from book import pages, picture, running
from book.comparing import find_difference
from book.pages import BookPage, get_parser
from book.site import BookSite
from tests.support.paths import REPOSITORY_ROOT
from tests.support.process_trees import is_alive
from tests.support.waiting import wait_until

PAGES_BY_PATH = {page.path: page for page in pages.read_all_pages()}

pytestmark = pytest.mark.skipif(not Path("/bin/bash").exists(), reason="the pages are written for a POSIX shell")


def parse_page(text: str) -> BookPage:
    return BookPage("page.md", tuple(get_parser().parse(text)))


def find_problems(text: str) -> list[str]:
    return [str(problem) for problem in running.check_page(parse_page(text))]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", PAGES_BY_PATH)
def test_the_code_on_a_page_does_what_the_page_shows(path: str) -> None:
    needs_curl = any("curl " in token.content for token in PAGES_BY_PATH[path].tokens if token.type == "fence")
    if needs_curl and shutil.which("curl") is None:
        pytest.skip("the page asks with curl, which is not there")
    assert [str(problem) for problem in running.check_page(PAGES_BY_PATH[path])] == []


def test_every_link_of_the_site_leads_somewhere(tmp_path: Path) -> None:
    site = BookSite(list(PAGES_BY_PATH.values()))

    assert site.write(tmp_path / "site") == []
    assert (tmp_path / "site" / "index.html").read_text().startswith("<!doctype html>")


def test_the_site_can_be_searched_copied_and_read_as_plain_text(tmp_path: Path) -> None:
    site = BookSite(list(PAGES_BY_PATH.values()))

    site.write(tmp_path)

    index = (tmp_path / "search-index.js").read_text()
    sections = json.loads(index.removeprefix("window.SEARCH_SECTIONS = ").rstrip(";\n"))
    [connecting] = [section for section in sections if section["title"] == "3. Connect your agent"]
    page = (tmp_path / "getting-started.html").read_text()
    plain_names = {name.removesuffix(".html") + ".txt" for name in site.files.values()}
    assert connecting["href"] == "getting-started.html#3-connect-your-agent"
    assert "codex" in connecting["text"].split()
    assert '<li class="level-2"><a href="#3-connect-your-agent">3. Connect your agent</a></li>' in page
    assert '<span class="gp">$ </span>' in page
    assert {name for name in plain_names if f"({name})" not in (tmp_path / "llms.txt").read_text()} == set()
    assert (tmp_path / "getting-started.txt").read_text() == (REPOSITORY_ROOT / "docs/getting-started.md").read_text()


def test_the_picture_shows_what_the_program_says() -> None:
    assert picture.find_stale_line(list(picture.record_session())) == ""


# The checks themselves


def test_a_command_that_fails_or_says_something_else_is_found() -> None:
    page_problems = find_problems(
        "```console\n$ echo one\ntwo\n$ false\n$ echo yes\nyes\n```\n\n```sh\nfalse\ntrue\n```\n"
    )

    assert [problem.splitlines()[0] for problem in page_problems] == [
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

    assert find_problems(text) == []


def test_data_is_parsed_and_python_is_run() -> None:
    page_problems = find_problems(
        "```json\n{,}\n```\n\n```toml\na =\n```\n\n```python\nassert False\n```\n\n"
        "```python\nif\n```\n\n```yaml\na: [\n```\n"
    )

    assert [problem.split(":")[1] for problem in page_problems] == ["1", "5", "13", "17", "9"]


def test_a_block_without_a_language_or_with_an_unknown_one_needs_its_reason() -> None:
    page_problems = find_problems("```\nx\n```\n\n```rust\nx\n```\n\n<!-- not run: no compiler -->\n```go\n```\n")

    assert [problem.split("; known")[0] for problem in page_problems] == [
        "page.md:1: a block of no language",
        "page.md:5: a block of rust",
    ]
    assert find_problems("<!-- not run: x -->\n\nWords.\n\n```go\n```\n") != []


def test_what_a_page_starts_is_ended_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "pid"

    assert find_problems(f"```sh\nsleep 600 & echo $! > {mark}\n```\n") == []

    wait_until(lambda: not is_alive(int(mark.read_text())))


@pytest.mark.parametrize(
    ("expected_output", "real_output", "missing"),
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
    expected_output: str, real_output: str, missing: str
) -> None:
    assert find_difference(expected_output, real_output, "/home/x") == missing


def test_links_and_anchors_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    text = "# A b\n\n[x](#a-b) [y](#c) [z](nothing.md) [w](https://example.org) ![p](LICENSE)\n"

    assert BookSite([parse_page(text)]).write(tmp_path / "site") == [
        "page.md:3: page.md has no #c",
        "page.md:3: there is no nothing.md",
    ]


def test_two_headings_of_the_same_words_have_two_anchors(tmp_path: Path) -> None:
    BookSite([parse_page("# The `x` one!\n\n## Same\n\n## Same\n")]).write(tmp_path / "site")

    text = (tmp_path / "site" / "page.html").read_text()
    assert all(f'id="{anchor}"' in text for anchor in ("the-x-one", "same", "same-1"))
