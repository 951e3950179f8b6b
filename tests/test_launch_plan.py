"""The plan: which pages, where they lie, and that Hugo serves them where the plan says."""

import datetime as dt
import tomllib
from pathlib import Path

import pytest

from cleats.toolsets.launch.planning.serving import Serving
from tests import hugo_world

PAGE = "---\ntitle: Über uns & mehr\ndate: 2024-03-09\n---\nText.\n"

SITES = {
    "plain": ("", ["content/docs/Some Page.md", "content/docs/a/_index.md", "content/_index.md"]),
    "bundles": ("", ["content/docs/a/index.md", "content/docs/c/d/index.md"]),
    "below a path": ("", ["content/docs/x.md"]),
    "ugly": ("uglyURLs = true", ["content/docs/x.md", "content/docs/_index.md"]),
    "languages by name": (
        '[languages.en]\n[languages.de]\n[languages."pt-br"]',
        ["content/docs/x.md", "content/docs/x.de.md", "content/docs/b/index.pt-br.md"],
    ),
    "default language in a folder": (
        "defaultContentLanguageInSubdir = true\n[languages.en]\n[languages.de]",
        ["content/docs/x.md", "content/docs/x.de.md", "content/docs/_index.en.md"],
    ),
    "one language in a folder": (
        "defaultContentLanguageInSubdir = true\n[languages.en]",
        ["content/docs/x.md"],
    ),
    "another default": (
        'defaultContentLanguage = "de"\n[languages.en]\n[languages.de]',
        ["content/docs/x.md", "content/docs/x.en.md"],
    ),
    "languages by folder": (
        '[languages]\nen.contentDir = "content/site/3d/en"\nde.contentDir = "content/site/3d/de"',
        ["content/site/3d/en/python/x.md", "content/site/3d/de/python/x.md"],
    ),
    "a content folder of its own": ('contentDir = "content/docs.org"', ["content/docs.org/a/x.md"]),
    "mounts": (
        '[[module.mounts]]\nsource = "pages/en"\ntarget = "content/docs"',
        ["pages/en/x.md", "pages/en/b/index.md"],
    ),
    "permalinks": (
        """
        [permalinks]
        blog = "/:year/:month/:day/:slug/"
        docs = "/d/:sections[1:]/:filename/"
        notes = "/n/:title/"
        section.kb = "/know/"
        """,
        [
            "content/blog/x.md",
            "content/docs/a/b/x.md",
            "content/docs/a/bundle/index.md",
            "content/docs/a/_index.md",
            "content/notes/y.md",
            "content/kb/_index.md",
            "content/kb/z.md",
        ],
    ),
    "permalinks of pages": (
        '[permalinks.page]\ndocs = "/:section/:contentbasename/"\nblog = "/:sections/:slug/"',
        ["content/docs/a/b/x.md", "content/docs/a/bundle/index.md", "content/blog/2024/x.md"],
    ),
    "permalinks of nested sections": (
        '[permalinks.page]\ndocs = "/:sections/x/:sections[last]/:contentbasename/"',
        ["content/docs/a/_index.md", "content/docs/a/b/x.md"],
    ),
    "case kept": ("disablePathToLower = true", ["content/Docs/Some Page.md"]),
}


@pytest.mark.parametrize("name", SITES)
def test_hugo_serves_a_page_where_the_plan_says(name: str, tmp_path: Path) -> None:
    config, files = SITES[name]
    base = "https://example.org/sub/" if name == "below a path" else "https://example.org/"
    text = f'baseURL = "{base}"\ndisableKinds = ["taxonomy", "term", "RSS", "sitemap"]\n{config}\n'
    layouts = {f"layouts/{kind}.html": "{{ .Title }}" for kind in ("page", "section", "home")}
    written = {"hugo.toml": text, **layouts, **dict.fromkeys(files, PAGE)}
    hugo_world.build(tmp_path / "site", tmp_path / "out", files=written)
    settings = {key.lower(): value for key, value in tomllib.loads(text).items()}
    serving = Serving.of(settings).knowing(files)

    planned = [
        str(serving.url_path(path, title="Über uns & mehr", date=dt.date(2024, 3, 9)))
        for path in files
    ]

    there = hugo_world.served(tmp_path / "out")
    below = base.removeprefix("https://example.org")
    assert {"/" + path.removeprefix(below) for path in planned} <= there, there
    assert len(set(planned)) == len(files)
