from collections.abc import Mapping

import pytest

from cleats.toolsets.code.analysis.extract import extract_facts
from cleats.toolsets.code.analysis.facts import Chunk, FileFacts
from cleats.toolsets.code.analysis.languages.language_names import detect_language_by_path, get_language_mode
from tests.support.paths import TESTS_FOLDER

DOCUMENTS_FOLDER = TESTS_FOLDER / "fixtures" / "documents"


def extract_fixture(name: str) -> FileFacts:
    lang = detect_language_by_path(name)
    return extract_facts(name, (DOCUMENTS_FOLDER / name).read_bytes(), lang, get_language_mode(lang))


def extract_chunks(text: str, lang: str) -> list[Chunk]:
    return extract_facts("dir/file.x", text.encode(), lang, get_language_mode(lang)).chunks


def map_lines(facts: FileFacts) -> Mapping[str, tuple[int, int]]:
    return {chunk.name: (chunk.start_line, chunk.end_line) for chunk in facts.chunks}


def find_chunk(facts: FileFacts, name: str) -> Chunk:
    return next(chunk for chunk in facts.chunks if chunk.name == name)


def test_markdown_is_cut_at_headings_and_nowhere_else() -> None:
    facts = extract_fixture("guide.md")

    assert map_lines(facts) == {
        "guide": (1, 5),
        "Guide one": (7, 10),
        "Install": (12, 19),
        "Underlined": (21, 27),
        "Deep": (29, 39),
    }
    assert {chunk.kind for chunk in facts.chunks} == {"section"}
    assert {chunk.mode for chunk in facts.chunks} == {"prose"}


def test_a_section_knows_its_way_its_first_paragraph_its_links_and_its_code() -> None:
    facts = extract_fixture("guide.md")

    assert find_chunk(facts, "Guide one").doc == "What the guide is for, in two lines."
    assert find_chunk(facts, "Deep").signature == "Guide one > Underlined > Deep"
    assert find_chunk(facts, "Install").uses == ["https://example.org/x"]
    assert find_chunk(facts, "Install").fields == {"code": "sh"}
    assert find_chunk(facts, "guide").fields["title"] == "The guide"


def test_a_long_section_is_cut_at_a_blank_line() -> None:
    text = "# A\n" + "text\n" * 99 + "\n" + "more\n" * 50

    chunks = extract_chunks(text, "markdown")

    assert [(chunk.name, chunk.start_line, chunk.end_line) for chunk in chunks] == [
        ("A", 1, 100),
        ("A", 102, 151),
    ]


def test_restructured_text_is_cut_at_underlined_titles() -> None:
    facts = extract_fixture("guide.rst")

    assert map_lines(facts) == {"Guide": (1, 5), "Install": (7, 17), "Deeper": (19, 22)}
    assert find_chunk(facts, "Deeper").signature == "Guide > Install > Deeper"
    assert find_chunk(facts, "Install").uses == ["pkg.Thing", "https://example.org"]
    assert facts.imports == ["other.rst"]


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("asciidoc", "= One\n\n----\n== no\n----\n\n== Two\n\ntext\n"),
        ("org", "* One\ntext\n\n\n\n\n** Two\n"),
        ("tex", "\\section{One}\ntext\n\n\n\n\n\\subsection*{Two}\n"),
    ],
)
def test_other_documents_are_cut_at_their_headings(lang: str, text: str) -> None:
    chunks = extract_chunks(text, lang)

    assert [(chunk.name, chunk.start_line) for chunk in chunks] == [("One", 1), ("Two", 7)]
    assert chunks[1].signature == "One > Two"


def test_a_page_is_cut_at_headings_scripts_and_named_parts() -> None:
    facts = extract_fixture("page.html")

    assert [(chunk.name, chunk.start_line, chunk.lang) for chunk in facts.chunks] == [
        ("The & page", 1, ""),
        ("style", 8, "css"),
        ("The & page", 11, ""),
        ("First part", 13, ""),
        ("script", 15, "javascript"),
        ("First part", 18, ""),
        ("Second", 19, ""),
        ("form#login", 21, ""),
    ]
    assert facts.imports == ["a.css", "a.js"]
    assert find_chunk(facts, "First part").doc == "A paragraph with a link."
    assert find_chunk(facts, "First part").uses == ["x.html"]
    assert find_chunk(facts, "The & page").fields == {"description": "What it is"}


def test_a_log_keeps_a_stack_together_and_names_it_after_what_failed() -> None:
    facts = extract_fixture("app.log")

    assert [(chunk.start_line, chunk.end_line) for chunk in facts.chunks] == [
        (1, 2),
        (3, 7),
        (8, 8),
    ]
    failed = facts.chunks[1]
    assert failed.name == "ValueError: no such thing"
    assert failed.fields["level"] == "error"
    assert (failed.kind, failed.mode) == ("record", "records")


def test_a_java_stack_is_one_record() -> None:
    text = (
        "2024-01-02 10:00:00 INFO up\n"
        "2024-01-02 10:00:01 ERROR java.lang.IllegalStateException: bad\n"
        "\tat a.B.c(B.java:1)\n"
        "Caused by: java.io.IOException: worse\n"
        "\t... 3 more\n"
        "2024-01-02 10:00:02 INFO on\n"
    )

    chunks = extract_chunks(text, "log")

    assert [(chunk.name, chunk.start_line, chunk.end_line) for chunk in chunks] == [
        ("file", 1, 1),
        ("java.lang.IllegalStateException: bad", 2, 5),
        ("file", 6, 6),
    ]


def test_calm_entries_share_records_of_bounded_length() -> None:
    chunks = extract_chunks("10:00:00 INFO x\n" * 200, "log")

    assert [chunk.end_line - chunk.start_line + 1 for chunk in chunks] == [60, 60, 60, 20]


def test_failed_tests_and_coverage_are_records_by_name() -> None:
    tap = extract_chunks("TAP version 14\nok 1 - fine\nnot ok 2 - broken\n  ---\n  why: x\n  ...\n", "log")
    coverage = extract_chunks("TN:\nSF:src/a.c\nDA:1,1\nend_of_record\nSF:src/b.c\nDA:1,0\n", "log")

    assert tap[-1].name == "broken"
    assert [chunk.name for chunk in coverage] == ["file", "src/a.c", "src/b.c"]
    assert coverage[1].uses == ["src/a.c"]


def test_each_line_of_json_is_a_record_with_fields() -> None:
    facts = extract_fixture("events.jsonl")

    assert [chunk.fields for chunk in facts.chunks] == [
        {"level": "info", "user.id": "7"},
        {"level": "error", "tags": "a, b"},
        {},
    ]


def test_text_without_structure_is_cut_into_blocks_of_sixty_lines() -> None:
    chunks = extract_chunks("word\n" * 130, "text")

    assert [(chunk.start_line, chunk.end_line) for chunk in chunks] == [
        (1, 60),
        (61, 120),
        (121, 130),
    ]
    assert {(chunk.kind, chunk.name) for chunk in chunks} == {("lines", "file")}


def test_the_script_of_a_component_is_read_as_a_program() -> None:
    text = (
        "<template>\n  <p>{{ name }}</p>\n</template>\n"
        '<script lang="ts">\nimport { ref } from "vue"\n'
        "export function load(id: number): string {\n  return fetch(id)\n}\nload(1)\n</script>\n"
    )
    data = text.encode()

    facts = extract_facts("a.vue", data, "vue", "code")

    load = find_chunk(facts, "load")
    assert (load.kind, load.lang, load.start_line, load.end_line) == (
        "function",
        "typescript",
        6,
        8,
    )
    assert facts.imports == ["vue"]
    own_source = b"".join(data[start:end] for start, end in find_chunk(facts, "script").own)
    assert b"import" in own_source
    assert b"load(1)" in own_source
    assert b"fetch" not in own_source


@pytest.mark.parametrize(
    ("tag", "lang"),
    [
        ("<script>", "javascript"),
        ('<script type="module">', "javascript"),
        ('<script type="text/javascript">', "javascript"),
        ('<script lang="ts">', "typescript"),
        ('<script lang="tsx">', "tsx"),
        ('<script type="application/ld+json">', "json"),
        ('<script type="text/x-handlebars">', ""),
        ('<style lang="scss">', "scss"),
        ("<style>", "css"),
    ],
)
def test_a_script_says_what_it_is_written_in(tag: str, lang: str) -> None:
    name = tag[1:].split(" ", maxsplit=1)[0].rstrip(">")

    chunks = extract_chunks(f"{tag}\n1\n</{name}>\n", "html")

    assert chunks[0].lang == lang
