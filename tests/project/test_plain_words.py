"""Texts that people and models read are plain English: the phrases that need a second reading occur in none of them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.paths import REPOSITORY_ROOT

SOURCE = REPOSITORY_ROOT / "src" / "cleats"

PHRASE_PATTERN: Final = re.compile(
    r"(?<!there )\b(?:is|are) no (?!longer\b|more\b|such\b)"
    r"|\bis none\b|\bnone of ours\b|\bso many\b|\btold (?:as|again|by)\b|\bcalled so\b"
    r"|\bstands? (?:beside|for|below|above|under)\b|\banew\b|\bwhoever\b",
    re.IGNORECASE,
)
"""Phrases that are banned everywhere; "is no" is fine in "there is no" and "is no longer"."""

MESSAGE_PATTERN: Final = re.compile(
    PHRASE_PATTERN.pattern
    + r"|\bthere (?:is|are) no (?!longer\b|more\b|such\b)|\bof (?:ours|yours)\b|\btold\b"
    + r"|\bof (?:its|one's) own\b|\blies\b|\bis said\b|\bwithout it\b",
    re.IGNORECASE,
)
"""Phrases that are banned in messages, which have to be understood without the sentences around them."""

BOUND_TEXTS: Final[frozenset[str]] = frozenset()
"""The string literals that a specification binds although they have a banned phrase."""

PAGES = [
    REPOSITORY_ROOT / "README.md",
    REPOSITORY_ROOT / "CHANGELOG.md",
    *sorted((REPOSITORY_ROOT / "docs").glob("*.md")),
]

_CODE_PATTERN = re.compile(r"(?ms)^```.*?^```|`[^`\n]*`")


class BannedPhrase(NamedTuple):
    """A banned phrase with its place and the words around it."""

    path: str
    line: int
    excerpt: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.excerpt}"


def find_phrases(pattern: re.Pattern[str], path: Path, text: str, first_line: int = 1) -> Iterator[BannedPhrase]:
    """Yield the phrases of a text that match a pattern, with the lines they are on."""
    for match in pattern.finditer(text):
        excerpt = " ".join(text[max(0, match.start() - 30) : match.end() + 30].split())
        yield BannedPhrase(str(path), first_line + text.count("\n", 0, match.start()), excerpt)


def find_in_module(path: Path) -> Iterator[BannedPhrase]:
    """Yield the banned phrases of a module's string literals; docstrings are for maintainers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        if node.value not in BOUND_TEXTS:
            yield from find_phrases(MESSAGE_PATTERN, path, node.value, node.lineno)


def find_in_page(path: Path) -> Iterator[BannedPhrase]:
    """Yield the banned phrases of a page outside of its code."""
    text = path.read_text(encoding="utf-8")
    yield from find_phrases(PHRASE_PATTERN, path, _CODE_PATTERN.sub(lambda match: "\n" * match[0].count("\n"), text))


def test_no_message_of_the_program_has_a_banned_phrase() -> None:
    modules = sorted(SOURCE.rglob("*.py"))
    assert len(modules) > 300
    assert [str(phrase) for path in modules for phrase in find_in_module(path)] == []


def test_no_table_or_schema_of_the_program_has_a_banned_phrase() -> None:
    tables = [path for suffix in ("json", "toml") for path in sorted(SOURCE.rglob(f"*.{suffix}"))]
    assert len(tables) > 20
    texts = ((path, path.read_text(encoding="utf-8")) for path in tables)
    assert [str(phrase) for path, text in texts for phrase in find_phrases(MESSAGE_PATTERN, path, text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_has_a_banned_phrase_outside_of_its_code(page: Path) -> None:
    assert [str(phrase) for phrase in find_in_page(page)] == []


def test_a_banned_phrase_is_found_in_every_kind_of_text(tmp_path: Path) -> None:
    module = tmp_path / "messages.py"
    module.write_text(
        '"""This is no message."""\nname = "x"\nerror = f"{name} is no number"\nfine = "it is no longer so"\n'
    )
    page = tmp_path / "page.md"
    page.write_text("`it is no word`\n\n```console\nthis is no word\n```\n\nWhoever reads it.\n")
    assert [phrase.line for phrase in find_in_module(module)] == [3]
    assert [phrase.line for phrase in find_in_page(page)] == [7]
