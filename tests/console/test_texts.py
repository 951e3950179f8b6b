"""Tests of what becomes of hostile text: code, Markdown, places in JSON."""

import pytest

from cleats.console.highlighting import MAX_COLOURED_CHARS, highlight_lines
from cleats.console.json_locations import locate_pointers
from cleats.console.page_preview import build_source_url, preview_page, render_markdown

HOSTILE_TEXT = """<script>alert(1)</script> & "quotes" '</span>'"""


@pytest.mark.parametrize("language", ["python", "html", "javascript", "markdown", "no such language", ""])
def test_code_is_escaped_in_every_language(language: str) -> None:
    [line] = highlight_lines(HOSTILE_TEXT, language=language)

    assert "<script" not in line.html
    assert "&lt;" in line.html
    assert line.html.replace("</span>", "").count("<") == line.html.count("<span class=")


def test_lines_keep_their_numbers_and_marks() -> None:
    text = '"""one\ntwo\n\nfour"""\nx = 1'

    lines = highlight_lines(text, language="python", first_line=7, marked_lines={8, 99})

    assert [line.number for line in lines] == [7, 8, 9, 10, 11]
    assert [line.number for line in lines if line.is_marked] == [8]


def test_a_very_long_text_is_shown_without_colours() -> None:
    lines = highlight_lines("x = '<'\n" * (MAX_COLOURED_CHARS // 8 + 1), language="python")

    assert lines[0].html == "x = &#x27;&lt;&#x27;"


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](<data:text/html,<script>alert(1)</script>>)",
        "![a](https://evil.example/a.png)",
        '[a](https://ok.example/" onclick="alert(1))',
        '<!-- claims: x"onclick=alert(1) -->',
        "[a]: javascript:alert(1)\n\n[a]",
        "```html\n<script>alert(1)</script>\n```",
    ],
)
def test_markdown_cannot_become_active(source: str) -> None:
    html = str(render_markdown(source)) + str(preview_page(source, {}, "").html)

    for forbidden in ("<script", "<img", "<iframe", 'href="javascript', 'href="data', "<a onclick"):
        assert forbidden not in html
    for attribute in (' onclick="', ' onerror="', " onerror=alert(1)>"):
        assert attribute not in html.replace("&lt;img src=x onerror=alert(1)&gt;", "")


def test_a_page_is_shown_with_its_claims_and_their_evidence() -> None:
    source = "---\ntitle: Kit\n---\n\nIt can add. <!-- claims: c1 -->\n\nIt is small. <!-- claims: c2 c1 -->\n\n"
    source += "<!-- evidence abc\nc1 a.py:3-5\n-->\n"
    citation = {"path": "a.py", "start_line": 3, "end_line": 5, "source_type": "source_code"}
    claims = {"c1": {"claim_text": "Adds.", "citations": [citation], "confidence": "high", "truth_status": "fact"}}

    preview = preview_page(source, claims, "https://github.com/o/n/blob/abc")

    assert preview.front_matter == "title: Kit"
    assert 'It can add.<a class="claim-ref" href="#claim-1"' in preview.html
    assert preview.html.count('href="#claim-1"') == 2
    assert "evidence" not in preview.html.replace("Evidence of claim", "")
    assert [claim.text for claim in preview.claims] == ["Adds.", "This claim is not in the evidence map."]
    assert preview.claims[0].citations[0].url == "https://github.com/o/n/blob/abc/a.py#L3"


def test_the_text_of_the_evidence_is_beside_the_claim_and_cannot_become_active() -> None:
    place = ("a.py", 3, 20)
    citation = {"path": "a.py", "start_line": 3, "end_line": 20, "source_type": "source_code"}
    claims = {"c1": {"claim_text": "Adds.", "citations": [citation, {**citation, "end_line": 4}]}}

    (claim,) = preview_page("It can add. <!-- claims: c1 -->\n", claims, "", {place: ["<b>x", "y = 1"]}).claims

    with_text, without_text = claim.citations
    assert [(line.number, "<b>" in line.html) for line in with_text.lines] == [(3, False), (4, False)]
    assert (with_text.hidden_lines, without_text.lines, without_text.hidden_lines) == (16, (), 0)


def test_only_repositories_on_github_have_an_address_for_lines() -> None:
    assert build_source_url("https://github.com/o/n.git", "abc1") == "https://github.com/o/n/blob/abc1"
    assert build_source_url("local:source", "abc1") == ""
    assert build_source_url("https://github.com.evil.example/o/n", "abc1") == ""
    assert build_source_url("https://github.com/o/n", "abc/../..") == ""


def test_errors_are_found_at_their_place_in_a_json_text() -> None:
    text = '{\n  "a": 1,\n  "b/c": [\n    {"d": "}"},\n    {\n      "e": null}\n  ]\n}'

    lines = locate_pointers(text, ["", "/a", "/b~1c", "/b~1c/0/d", "/b~1c/1/e", "/b~1c/1/missing", "/nowhere"])

    assert lines == {
        "": 1,
        "/a": 2,
        "/b~1c": 3,
        "/b~1c/0/d": 4,
        "/b~1c/1/e": 6,
        "/b~1c/1/missing": 5,
        "/nowhere": 1,
    }


def test_a_preview_names_the_programs_of_the_page_that_ran() -> None:
    source = "Text with ran x:1.\n\n<!-- evidence abc\nc1 a.py:1\nran README.md:7-11\nran b.py:2\n-->\n"

    assert preview_page(source, {}, "").program_places == ["README.md:7-11", "b.py:2"]
    assert preview_page("ran x.py:1\n", {}, "").program_places == []
