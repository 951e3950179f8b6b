"""Tests of pages: they are read as Hugo reads them, and every finding has its line."""

import datetime as dt
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.system import front_matter
from cleats.toolsets.launch.site import claim_markers, pages
from tests.support import hugo as hugo_world
from tests.support.shell import LAW_SETTINGS

PAGE_TEXT = """---
title: Trimming
weight: 20
---

# Trimming

Use `trim` to cut text. <!-- claims: abc123 -->

- Keeps words whole. <!-- claims: c1 c2 -->

```python
- no claim <!-- claims: hidden -->
```

See [the guide](/guide/#first "Guide") and
[the source][src], <a href='/raw/'>raw</a>, ![A chart](/chart.png).

[src]: https://example.org/src
"""


def test_a_page_is_its_front_matter_its_body_and_where_the_body_begins() -> None:
    page = front_matter.parse_page(PAGE_TEXT)

    assert page.front == {"title": "Trimming", "weight": 20}
    assert page.front_kind == "yaml"
    assert page.body.startswith("\n# Trimming")
    assert PAGE_TEXT.splitlines()[page.body_line - 1 + 1] == "# Trimming"


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ('+++\ntitle = "T"\ndate = 2026-01-02\n+++\nBody\n', "toml", 5),
        ('{\n  "title": "T", "date": "2026-01-02"\n}\nBody\n', "json", 4),
        ("\ufeff---\r\ntitle: T\r\ndate: 2026-01-02\r\n---\r\nBody\r\n", "yaml", 5),
        ("---\ntitle: T\ndate: 2026-01-02\n---\nBody\n", "yaml", 5),
    ],
)
def test_front_matter_may_be_yaml_toml_or_json(text: str, kind: str, line: int) -> None:
    page = front_matter.parse_page(text)

    assert (page.front_kind, page.body, page.body_line) == (kind, "Body\n", line)
    assert page.front["title"] == "T"
    assert page.front["date"] in {dt.date(2026, 1, 2), "2026-01-02"}


def test_a_page_without_front_matter_is_all_body() -> None:
    assert front_matter.parse_page("Body\n---\nnot front\n").front_kind == ""
    assert front_matter.parse_page("").body == ""


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("---\ntitle: T\n", 1, "no closing"),
        ("---\ntitle: [\n---\n", 3, ""),
        ("---\ntitle: T\ntitle: U\n---\n", 3, "twice"),
        ("---\n- a\n---\n", 1, "mapping"),
        ("---\n? [a, b]\n: c\n---\n", 2, "plain value"),
        ("+++\ntitle = \n+++\n", 1, ""),
        ('{"title": }\n', 1, ""),
        ("---\n2026-13-99: x\ndate: 2026-13-99\n---\n", 1, ""),
        ("---\na: !!bool x\n---\n", 1, "its tag"),
        ("---\na: !!timestamp 3\n---\n", 1, "its tag"),
        pytest.param(f"---\na: {'[' * 5000}\n---\n", 1, "too deeply", id="deep YAML"),
        pytest.param(f"+++\na = {'[' * 5000}\n+++\n", 1, "too deeply", id="deep TOML"),
    ],
)
def test_front_matter_that_cannot_be_read_is_refused_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(front_matter.FrontMatterError) as caught:
        front_matter.parse_page(text)

    assert caught.value.line == line
    assert words in caught.value.message


def test_links_images_fences_and_claims_have_their_lines() -> None:
    page = front_matter.parse_page(PAGE_TEXT)
    at = page.body_line

    def find_line(words: str) -> int:
        return next(n for n, line in enumerate(PAGE_TEXT.splitlines(), 1) if words in line)

    assert pages.list_links(page.body, at) == [
        pages.PageLink("/guide/#first", "the guide", find_line("See [the guide]")),
        pages.PageLink("https://example.org/src", "the source", find_line("[the source]")),
        pages.PageLink("/raw/", "", find_line("[the source]")),
    ]
    assert pages.list_images(page.body, at) == [pages.PageLink("/chart.png", "A chart", find_line("A chart"))]
    assert [(fence.language, fence.line) for fence in pages.list_code_blocks(page.body, at)] == [
        ("python", find_line("```python"))
    ]
    assert claim_markers.list_claim_markers(page.body, at) == [
        claim_markers.ClaimMarker("abc123", find_line("Use `trim`"), "Use `trim` to cut text."),
        claim_markers.ClaimMarker("c1", find_line("Keeps words"), "Keeps words whole."),
        claim_markers.ClaimMarker("c2", find_line("Keeps words"), "Keeps words whole."),
    ]


HEADINGS_TEXT = """## Install the *package*
## Install the `package`
### What's new in 2.0?
## C++ & C#: a-b_c
## Über größe 日本語
## [Link](/target/) here
## Own {#own-id}
Setext heading
---
## ---
## 1. First step
## A -- b --- c-d ... e
## Trailing ##
## ![Alt text](/x.png) and <b>html</b> &amp; a\\*b
## Install the *package*
Two
lines
=====
"""


def test_anchors_are_the_ones_that_hugo_makes(tmp_path: Path) -> None:
    hugo_world.build_site(
        tmp_path / "site",
        tmp_path / "out",
        files={
            "hugo.toml": 'baseURL = "https://example.org/"\ndisableKinds = ["taxonomy","term"]',
            "layouts/single.html": hugo_world.PLAIN_LAYOUT,
            "layouts/home.html": hugo_world.PLAIN_LAYOUT,
            "content/page.md": "---\ntitle: T\n---\n" + HEADINGS_TEXT,
        },
    )
    html = (tmp_path / "out/page/index.html").read_text(encoding="utf-8")

    headings = pages.list_headings(HEADINGS_TEXT)

    assert [heading.anchor for heading in headings] == re.findall(r'<h[1-3] id="?([^">]+)"?>', html)
    assert {heading.level for heading in headings} == {1, 2, 3}
    assert headings[0].text == "Install the package"
    assert headings[6].text == "Own"
    assert headings[-1] == pages.PageHeading(1, "Two lines", "lines", 16)


FRONT_MATTER_VALUES = st.recursive(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
    | st.integers(-5, 5)
    | st.booleans()
    | st.dates(min_value=dt.date(1000, 1, 1)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=6,
)


@LAW_SETTINGS
@given(st.dictionaries(st.text("abcde_", min_size=1, max_size=5), FRONT_MATTER_VALUES, max_size=4))
def test_what_is_rendered_reads_back_the_same(front: dict[str, object]) -> None:
    text = front_matter.render_page(front, "Hello.\n")
    page = front_matter.parse_page(text)

    assert page.front == front
    assert page.body == "\nHello.\n"
    assert front_matter.render_page(page.front, page.body) == text


@LAW_SETTINGS
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_text_can_be_asked_anything(text: str) -> None:
    pages.list_headings(text)
    pages.list_links(text)
    pages.list_images(text)
    pages.list_code_blocks(text)
    claim_markers.list_claim_markers(text)
