"""Tests of the navigation of MkDocs sites: pages come and go, and every other byte stays."""

import pytest

from cleats.toolsets.launch.site.mkdocs import parse_mkdocs_config
from cleats.toolsets.launch.site.mkdocs_nav import NavGroup, update_nav
from tests.support.launch_sites import MKDOCS_CONFIG

GROUP = NavGroup(
    "Measure: kit", ["kit/index.md", "kit/install.md"], {"API reference": ["kit/api/a.md", "kit/api/b.md"]}
)


def test_a_first_launch_adds_a_group_at_the_end_and_keeps_comments_quotes_and_gaps() -> None:
    updated = update_nav(MKDOCS_CONFIG, GROUP.all_pages, GROUP, ())

    assert updated == MKDOCS_CONFIG.replace(
        "   # written by Ann\n",
        "   # written by Ann\n"
        '  - "Measure: kit":\n'
        "      - kit/index.md\n"
        "      - kit/install.md\n"
        "      - API reference:\n"
        "          - kit/api/a.md\n"
        "          - kit/api/b.md\n",
    )


def test_a_later_page_follows_its_predecessor_also_where_people_moved_it_and_a_removed_page_goes() -> None:
    text = "nav:\n- Kit:\n  - Setup: kit/install.md\n  - Start: kit/index.md # first\n- About: about.md\n- kit/old.md\n"
    order = ["kit/index.md", "kit/guide.md", "kit/install.md", "kit/tasks.md"]

    updated = update_nav(text, order, NavGroup("Kit", ["kit/guide.md", "kit/tasks.md"], {}), ["kit/old.md"])

    assert updated == (
        "nav:\n- Kit:\n  - Setup: kit/install.md\n  - kit/tasks.md\n"
        "  - Start: kit/index.md # first\n  - kit/guide.md\n- About: about.md\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "nav: [index.md, {About: about.md}]\nsite_name: A\n",
        "nav: []\n",
        "site_name: A\nnav:\n- index.md",
        "nav:\r\n  - index.md\r\ntheme: mkdocs\r\n",
        "nav:\n  - A:\n    - B:\n      - c.md\n\n\n# the end\n",
        "nav:\n  - Link: https://example.org/\n  -  index.md\nextra: {a: !ENV B}\n",
    ],
)
def test_a_navigation_in_any_style_lists_the_new_pages_after_the_old_ones(text: str) -> None:
    updated = update_nav(text, GROUP.all_pages, GROUP, ())

    assert updated is not None
    old, new = parse_mkdocs_config("", text), parse_mkdocs_config("", updated)
    assert new.nav_pages == (*old.nav_pages, *GROUP.all_pages)
    assert {**new.document, "nav": 0} == {**old.document, "nav": 0}
    assert ("\r\n" in text) == (updated.count("\n") == updated.count("\r\n"))


@pytest.mark.parametrize("text", ["site_name: A\n", "nav: index.md\n", "nav: [\n", "nav: null\n"])
def test_a_site_without_a_navigation_stays_as_it_is(text: str) -> None:
    assert update_nav(text, GROUP.all_pages, GROUP, ()) is None


def test_a_page_that_is_listed_already_is_not_listed_again() -> None:
    updated = update_nav(MKDOCS_CONFIG, GROUP.all_pages, GROUP, ()) or ""

    assert update_nav(updated, GROUP.all_pages, GROUP, ()) is None
