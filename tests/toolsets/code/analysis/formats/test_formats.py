from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cleats.toolsets.code.analysis.extract import extract_facts
from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.analysis.formats.outline import MAX_CHUNK_LINES
from cleats.toolsets.code.analysis.formats.registry import READERS_BY_LANGUAGE
from cleats.toolsets.code.analysis.kinds import CHUNK_KINDS
from cleats.toolsets.code.analysis.languages.language_names import detect_language_by_path, get_language_mode
from tests.support.paths import TESTS_FOLDER

DOCUMENTS_FOLDER = TESTS_FOLDER / "fixtures" / "documents"

DOCUMENT_LINES = [
    *("# Title", "## Part", "===", "---", "~~~", "```python", "```", "+++", "[table]", "[[t]]"),
    *("key: value", "  deeper: |", "- item", "- name: x", "kind: Pod", "apiVersion: v1", "..."),
    *('{"a": 1,', '"b": {', "}", "[", "]", '"c": [1, 2]', "// c", "/* open", "*/", '"unclosed'),
    *("create table t (a int);", "select * from t", "begin", "end;", "$$", "delimiter //", "'q"),
    *("FROM a AS b", "RUN x \\", "RUN <<EOF", "EOF", "all: one", "\tcmd", "X := 1", "define y"),
    *(".a {", "color: red;", "@import 'x';", "<h1>T</h1>", "<script>", "</script>", "<p", "<!--"),
    *("<root>", "<a name='b'>", "</a>", "2024-01-02 10:11:12 ERROR x", "  at a.b(c)", "SF:a.c"),
    *("not ok 1 - x", '{"level": "info"}', ".. include:: x", "\\section{A}", "= A", "* B", "----"),
    *("é\u2028ß", "\r", "\x0b", "a" * 300),
]
documents = st.lists(st.one_of(st.sampled_from(DOCUMENT_LINES), st.just(""), st.text(max_size=12)), max_size=40).map(
    "\n".join
)


def list_covered_lines(chunks: list[Chunk]) -> list[int]:
    return [line for chunk in chunks for line in range(chunk.start_line, chunk.end_line + 1)]


def check_coverage(data: bytes, chunks: list[Chunk]) -> None:
    lines = data.split(b"\n")
    numbers = list_covered_lines(chunks)
    assert len(numbers) == len(set(numbers))
    text_lines = {at for at, line in enumerate(lines, 1) if line.decode(errors="replace").strip("\ufeff").strip()}
    assert text_lines <= set(numbers)
    for chunk in chunks:
        assert chunk.kind in CHUNK_KINDS
        assert chunk.name
        assert data[chunk.start : chunk.end].split(b"\n") == lines[chunk.start_line - 1 : chunk.end_line]
        assert chunk.end_line - chunk.start_line < MAX_CHUNK_LINES


@pytest.mark.parametrize("lang", [*READERS_BY_LANGUAGE, "text", "lua"])
@settings(max_examples=40, deadline=None)
@given(documents)
@example("\ufeff# A\n\nx")
@example("a\n" * 500)
def test_every_line_that_says_something_is_in_exactly_one_chunk(lang: str, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")

    facts = extract_facts("some/file.x", data, lang, get_language_mode(lang))

    assert "could not be parsed" not in facts.problem
    check_coverage(data, [chunk for chunk in facts.chunks if not chunk.lang or chunk.kind == "element"])


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([*READERS_BY_LANGUAGE, "python", "text"]))
def test_no_bytes_make_it_fail(data: bytes, lang: str) -> None:
    facts = extract_facts("file", data, lang, get_language_mode(lang))

    assert "could not be parsed" not in facts.problem


@pytest.mark.parametrize("path", sorted(DOCUMENTS_FOLDER.iterdir()), ids=lambda path: path.name)
def test_a_document_of_each_format_is_covered(path: Path) -> None:
    data = path.read_bytes()
    lang = detect_language_by_path(path.name)

    facts = extract_facts(path.name, data, lang, get_language_mode(lang))

    check_coverage(data, facts.chunks)
    assert [chunk.start for chunk in facts.chunks] == sorted(chunk.start for chunk in facts.chunks)
    assert all(first.end <= second.start for first, second in pairwise(facts.chunks))
