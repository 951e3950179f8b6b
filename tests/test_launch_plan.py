"""The plan: which pages, where they lie, and that Hugo serves them where the plan says."""

import datetime as dt
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drafting.templates import BASE
from cleats.toolsets.launch.planning.serving import Serving
from cleats.toolsets.launch.profiles import model
from tests import hugo_world, launch_sites
from tests.launch_pipeline import READING, Pipeline

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


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """The bundled sample, launched to a changed worktree."""
    return _plain(tmp_path_factory.mktemp("plain")).all()


@pytest.fixture(scope="module")
def aspose(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """The same package on a site of five hosts."""
    root = tmp_path_factory.mktemp("aspose")
    launch_sites.sample(root / "source", "source")
    launch_sites.aspose(root / "site", "cells")
    return _launched(root, profile="aspose", family="cells", required_sections=FIVE).all()


FIVE = ["products", "docs", "reference", "kb", "blog"]


def _plain(root: Path, **more: Any) -> Pipeline:
    launch_sites.sample(root / "source", "source")
    launch_sites.sample(root / "site", "site")
    return _launched(root, **more)


def _launched(root: Path, **more: Any) -> Pipeline:
    launch_sites.committed(root / "site")
    given = {"profile": "plain", "family": "measurekit", "required_sections": ["docs", "reference"]}
    return Pipeline(root, root / "source", root / "site", **{**given, **more})


def _refused(action: Callable[[], object]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        action()
    return caught.value


def test_the_plan_has_every_page_the_profile_wants(plain: Pipeline) -> None:
    plan = plain.json("page_plan.json")

    assert {page["output_path"]: page["url_path"] for page in plan["pages"]} == {
        "content/docs/measurekit/_index.md": "/docs/measurekit/",
        "content/docs/measurekit/developer-guide.md": "/docs/measurekit/developer-guide/",
        "content/docs/measurekit/getting-started.md": "/docs/measurekit/getting-started/",
        "content/docs/measurekit/installation.md": "/docs/measurekit/installation/",
        "content/reference/measurekit/_index.md": "/reference/measurekit/",
    }
    assert plan["launch_tier"] == "standard"
    assert plan["evidence_volume"]["total_score"] > 30


def test_links_between_pages_are_absolute_in_the_plan(plain: Pipeline, aspose: Pipeline) -> None:
    for run in (plain, aspose):
        pages = run.json("page_plan.json")["pages"]
        known = {page["token_mappings"]["ORIGIN"] + page["url_path"] for page in pages}
        for page in pages:
            assert page["cross_links"], page["output_path"]
            assert set(page["cross_links"]) <= known
            assert all(link.startswith("https://") for link in page["cross_links"])


def test_real_hugo_serves_the_bundled_sample_where_the_plan_says(
    plain: Pipeline, tmp_path: Path
) -> None:
    hugo_world.build(plain.site, tmp_path / "out")

    planned = {page["url_path"] for page in plain.json("page_plan.json")["pages"]}
    assert planned <= hugo_world.served(tmp_path / "out")


def test_real_hugo_serves_five_hosts_where_the_plan_says(aspose: Pipeline, tmp_path: Path) -> None:
    for page in aspose.json("page_plan.json")["pages"]:
        host = page["token_mappings"]["ORIGIN"].removeprefix("https://")
        out = tmp_path / host
        if not out.exists():
            name = f"{host}.toml" if host.startswith("blog") else f"{host}/cells.toml"
            hugo_world.build(aspose.site, out, config=f"configs/{name}")
        below = page["url_path"] if host.startswith("blog") else page["url_path"][len("/cells") :]
        assert below in hugo_world.served(out), page["url_path"]


def test_a_layout_without_platforms_leaves_them_out(tmp_path: Path) -> None:
    launch_sites.sample(tmp_path / "source", "source")
    launch_sites.aspose(tmp_path / "site", "cells")
    run = _launched(
        tmp_path,
        profile="aspose",
        family="cells",
        required_sections=["kb", "blog"],
        layout_mode="v1",
    ).do(*READING, "plan")

    assert [
        (page["output_path"], page["url_path"]) for page in run.json("page_plan.json")["pages"]
    ] == [
        ("content/kb.aspose.org/cells/en/faq.md", "/cells/faq/"),
        ("content/kb.aspose.org/cells/en/troubleshooting.md", "/cells/troubleshooting/"),
        ("content/blog.aspose.org/cells/announcement/index.md", "/cells/announcement/"),
    ]


def test_the_same_inputs_give_the_same_bytes(plain: Pipeline, tmp_path: Path) -> None:
    again = _plain(tmp_path).all()

    ours = {name for name in plain.inputs if not name.startswith(("resolved", "site_context"))}
    assert {name: plain.inputs[name] for name in ours} == {n: again.inputs[n] for n in ours}


def test_pages_lie_in_folders_where_the_site_has_them_in_folders(tmp_path: Path) -> None:
    launch_sites.sample(tmp_path / "site", "site")
    folder = tmp_path / "site/content/docs/greetings"
    for name in ("installation", "getting-started"):
        (folder / name).mkdir()
        (folder / f"{name}.md").rename(folder / name / "index.md")
    launch_sites.sample(tmp_path / "source", "source")
    run = _launched(tmp_path, required_sections=["docs"]).do(*READING, "plan")

    pages = {page["output_path"]: page["url_path"] for page in run.json("page_plan.json")["pages"]}
    path = "content/docs/measurekit/installation/index.md"
    assert pages[path] == "/docs/measurekit/installation/"
    assert "content/docs/measurekit/_index.md" in pages


def test_a_site_whose_own_address_cannot_be_read_has_none() -> None:
    named = {"languages": {"en": {"baseURL": "http://["}}}

    assert Serving.of({"baseurl": "http://[", **named}).origin("en") == ""


def test_an_address_that_another_page_has_is_a_blocker(tmp_path: Path) -> None:
    launch_sites.sample(tmp_path / "source", "source")
    launch_sites.sample(tmp_path / "site", "site")
    other = tmp_path / "site/content/docs/measurekit/installation/index.md"
    other.parent.mkdir(parents=True)
    other.write_text("---\ntitle: Mine\n---\nText.\n")
    run = _launched(tmp_path).do(*READING)

    error = _refused(lambda: run.do("plan"))

    assert error.details["error_code"] == "IA_PLANNER_URL_COLLISION"
    assert error.details["collisions"] == [
        {
            "url_path": "/docs/measurekit/installation/",
            "first": "content/docs/measurekit/installation/index.md",
            "second": "content/docs/measurekit/installation.md",
        }
    ]
    assert not error.retryable


def test_too_little_evidence_is_a_blocker_that_names_the_pages(tmp_path: Path) -> None:
    (tmp_path / "source/src/bare").mkdir(parents=True)
    (tmp_path / "source/src/bare/__init__.py").write_text("VALUE = 1\n")
    launch_sites.sample(tmp_path / "site", "site")
    run = _launched(tmp_path, family="bare").do(*READING)

    error = _refused(lambda: run.do("plan"))

    assert error.details["error_code"] == "IA_PLANNER_PLAN_INCOMPLETE"
    assert "developer-guide" in {each["slug"] for each in error.details["missing"]}


def test_a_language_without_templates_cannot_be_planned(tmp_path: Path) -> None:
    run = _plain(tmp_path, locales=["de"]).do(*READING)

    error = _refused(lambda: run.do("plan"))

    assert error.details["error_code"] == "IA_PLANNER_PLAN_INCOMPLETE"
    assert "'de'" in error.message


def test_other_languages_are_served_where_the_plan_says(tmp_path: Path) -> None:
    profile = tmp_path / "profiles/german"
    shutil.copytree(model.load("plain").folder, profile)
    text = (profile / "profile.toml").read_text(encoding="utf-8")
    (profile / "profile.toml").write_text(text.replace('name = "plain"', 'name = "german"', 1))
    for name in (
        "docs/_index",
        "docs/installation",
        "docs/getting-started",
        "docs/developer-guide",
    ):
        file = profile / f"templates/de/{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((BASE / f"{name}.md").read_text().replace("## Pages", "## Seiten"))
    launch_sites.sample(tmp_path / "source", "source")
    launch_sites.sample(tmp_path / "site", "site")
    config = tmp_path / "site/hugo.toml"
    config.write_text(
        "defaultContentLanguageInSubdir = true\n" + config.read_text() + "[languages.de]\n"
    )
    run = _launched(
        tmp_path,
        profile="german",
        profiles=(tmp_path / "profiles",),
        locales=["en", "de"],
        required_sections=["docs"],
    ).all()

    hugo_world.build(run.site, tmp_path / "out")

    planned = {p["output_path"]: p["url_path"] for p in run.json("page_plan.json")["pages"]}
    assert planned["content/docs/measurekit/_index.de.md"] == "/de/docs/measurekit/"
    assert planned["content/docs/measurekit/installation.md"] == "/en/docs/measurekit/installation/"
    assert len(planned) == 8
    assert set(planned.values()) <= hugo_world.served(tmp_path / "out")
    german = run.pages()["content/docs/measurekit/_index.de.md"]
    assert "## Seiten" in german
    assert "(/de/docs/measurekit/installation/)" in german
    assert "(/en/" not in german


def test_a_page_outside_the_allowed_paths_is_never_planned(tmp_path: Path) -> None:
    run = _plain(tmp_path, allowed_paths=["content/docs/measure", "content/reference/measurekit"])

    error = _refused(lambda: run.do(*READING, "plan"))

    assert error.code is ErrorCode.ALLOWED_PATHS_VIOLATION
