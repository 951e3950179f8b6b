from collections.abc import Mapping
from pathlib import Path

import pytest

from cleats.toolsets.code.extract import extract
from cleats.toolsets.code.facts import Chunk, FileFacts
from cleats.toolsets.code.languages.names import by_path, mode_of

DOCUMENTS = Path(__file__).parent / "fixtures" / "documents"


def fixture(name: str) -> FileFacts:
    lang = by_path(name)
    return extract(name, (DOCUMENTS / name).read_bytes(), lang, mode_of(lang))


def read(text: str, lang: str) -> list[Chunk]:
    return extract("dir/file.x", text.encode(), lang, mode_of(lang)).chunks


def lines(facts: FileFacts) -> Mapping[str, tuple[int, int]]:
    return {chunk.name: (chunk.start_line, chunk.end_line) for chunk in facts.chunks}


def named(facts: FileFacts, name: str) -> Chunk:
    return next(chunk for chunk in facts.chunks if chunk.name == name)


def test_markdown_is_cut_at_headings_and_nowhere_else() -> None:
    facts = fixture("guide.md")

    assert lines(facts) == {
        "guide": (1, 5),
        "Guide one": (7, 10),
        "Install": (12, 19),
        "Underlined": (21, 27),
        "Deep": (29, 39),
    }
    assert {chunk.kind for chunk in facts.chunks} == {"section"}
    assert {chunk.mode for chunk in facts.chunks} == {"prose"}


def test_a_section_knows_its_way_its_first_paragraph_its_links_and_its_code() -> None:
    facts = fixture("guide.md")

    assert named(facts, "Guide one").doc == "What the guide is for, in two lines."
    assert named(facts, "Deep").signature == "Guide one > Underlined > Deep"
    assert named(facts, "Install").uses == ["https://example.org/x"]
    assert named(facts, "Install").fields == {"code": "sh"}
    assert named(facts, "guide").fields["title"] == "The guide"


def test_a_long_section_is_cut_at_a_blank_line() -> None:
    text = "# A\n" + "text\n" * 99 + "\n" + "more\n" * 50

    chunks = read(text, "markdown")

    assert [(chunk.name, chunk.start_line, chunk.end_line) for chunk in chunks] == [
        ("A", 1, 100),
        ("A", 102, 151),
    ]


def test_restructured_text_is_cut_at_underlined_titles() -> None:
    facts = fixture("guide.rst")

    assert lines(facts) == {"Guide": (1, 5), "Install": (7, 17), "Deeper": (19, 22)}
    assert named(facts, "Deeper").signature == "Guide > Install > Deeper"
    assert named(facts, "Install").uses == ["pkg.Thing", "https://example.org"]
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
    chunks = read(text, lang)

    assert [(chunk.name, chunk.start_line) for chunk in chunks] == [("One", 1), ("Two", 7)]
    assert chunks[1].signature == "One > Two"


def test_a_page_is_cut_at_headings_scripts_and_named_parts() -> None:
    facts = fixture("page.html")

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
    assert named(facts, "First part").doc == "A paragraph with a link."
    assert named(facts, "First part").uses == ["x.html"]
    assert named(facts, "The & page").fields == {"description": "What it is"}


def test_a_log_keeps_a_stack_together_and_names_it_after_what_failed() -> None:
    facts = fixture("app.log")

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

    chunks = read(text, "log")

    assert [(chunk.name, chunk.start_line, chunk.end_line) for chunk in chunks] == [
        ("file", 1, 1),
        ("java.lang.IllegalStateException: bad", 2, 5),
        ("file", 6, 6),
    ]


def test_calm_entries_share_records_of_bounded_length() -> None:
    chunks = read("10:00:00 INFO x\n" * 200, "log")

    assert [chunk.end_line - chunk.start_line + 1 for chunk in chunks] == [60, 60, 60, 20]


def test_failed_tests_and_coverage_are_records_by_name() -> None:
    tap = read("TAP version 14\nok 1 - fine\nnot ok 2 - broken\n  ---\n  why: x\n  ...\n", "log")
    coverage = read("TN:\nSF:src/a.c\nDA:1,1\nend_of_record\nSF:src/b.c\nDA:1,0\n", "log")

    assert tap[-1].name == "broken"
    assert [chunk.name for chunk in coverage] == ["file", "src/a.c", "src/b.c"]
    assert coverage[1].uses == ["src/a.c"]


def test_each_line_of_json_is_a_record_with_fields() -> None:
    facts = fixture("events.jsonl")

    assert [chunk.fields for chunk in facts.chunks] == [
        {"level": "info", "user.id": "7"},
        {"level": "error", "tags": "a, b"},
        {},
    ]


def test_text_without_structure_is_cut_into_blocks_of_sixty_lines() -> None:
    chunks = read("word\n" * 130, "text")

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

    facts = extract("a.vue", data, "vue", "code")

    load = named(facts, "load")
    assert (load.kind, load.lang, load.start_line, load.end_line) == (
        "function",
        "typescript",
        6,
        8,
    )
    assert facts.imports == ["vue"]
    own = b"".join(data[start:end] for start, end in named(facts, "script").own)
    assert b"import" in own
    assert b"load(1)" in own
    assert b"fetch" not in own


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

    chunks = read(f"{tag}\n1\n</{name}>\n", "html")

    assert chunks[0].lang == lang
