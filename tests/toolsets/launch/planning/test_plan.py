"""Tests of the plan: its pages, their files, and that Hugo serves them at the planned URLs."""

import datetime as dt
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drafting.page import BASE_TEMPLATES_DIR
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.site.hugo_urls import HugoUrlRules
from tests.support import hugo as hugo_world
from tests.support import launch_sites
from tests.support.launch_pipeline import SOURCE_STEPS, Pipeline

PAGE_TEXT = "---\ntitle: Über uns & mehr\ndate: 2024-03-09\n---\nText.\n"

SITE_CASES = {
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


@pytest.mark.parametrize("name", SITE_CASES)
def test_hugo_serves_a_page_where_the_plan_says(name: str, tmp_path: Path) -> None:
    config, files = SITE_CASES[name]
    base = "https://example.org/sub/" if name == "below a path" else "https://example.org/"
    text = f'baseURL = "{base}"\ndisableKinds = ["taxonomy", "term", "RSS", "sitemap"]\n{config}\n'
    layouts = {f"layouts/{kind}.html": "{{ .Title }}" for kind in ("page", "section", "home")}
    site_files = {"hugo.toml": text, **layouts, **dict.fromkeys(files, PAGE_TEXT)}
    hugo_world.build_site(tmp_path / "site", tmp_path / "out", files=site_files)
    settings = {key.lower(): value for key, value in tomllib.loads(text).items()}
    serving = HugoUrlRules.from_settings(settings).with_paths(files)

    planned_urls = [
        str(serving.resolve_url_path(path, title="Über uns & mehr", date=dt.date(2024, 3, 9))) for path in files
    ]

    served_urls = hugo_world.list_page_urls(tmp_path / "out")
    below = base.removeprefix("https://example.org")
    assert {"/" + path.removeprefix(below) for path in planned_urls} <= served_urls, served_urls
    assert len(set(planned_urls)) == len(files)


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Launch the bundled sample up to a changed worktree."""
    return _build_plain_pipeline(tmp_path_factory.mktemp("plain")).run_all()


@pytest.fixture(scope="module")
def aspose_run(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Launch the same package on a site of five hosts."""
    root = tmp_path_factory.mktemp("aspose")
    launch_sites.copy_sample(root / "source", "source")
    launch_sites.write_aspose_site(root / "site", "cells")
    return _build_pipeline(root, profile="aspose", family="cells", required_sections=FIVE_SECTIONS).run_all()


FIVE_SECTIONS = ["products", "docs", "reference", "kb", "blog"]


def _build_plain_pipeline(root: Path, **changes: Any) -> Pipeline:
    launch_sites.copy_sample(root / "source", "source")
    launch_sites.copy_sample(root / "site", "site")
    return _build_pipeline(root, **changes)


def _build_pipeline(root: Path, **changes: Any) -> Pipeline:
    launch_sites.commit_folder(root / "site")
    defaults = {"profile": "plain", "family": "measurekit", "required_sections": ["docs", "reference"]}
    return Pipeline(root, root / "source", root / "site", **{**defaults, **changes})


def _catch_tool_error(action: Callable[[], object]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        action()
    return caught.value


def test_the_plan_has_every_page_the_profile_wants(plain_run: Pipeline) -> None:
    plan = plain_run.read_json("page_plan.json")

    assert {page["output_path"]: page["url_path"] for page in plan["pages"]} == {
        "content/docs/measurekit/_index.md": "/docs/measurekit/",
        "content/docs/measurekit/developer-guide.md": "/docs/measurekit/developer-guide/",
        "content/docs/measurekit/getting-started.md": "/docs/measurekit/getting-started/",
        "content/docs/measurekit/installation.md": "/docs/measurekit/installation/",
        "content/reference/measurekit/_index.md": "/reference/measurekit/",
    }
    assert plan["launch_tier"] == "standard"
    assert plan["evidence_volume"]["total_score"] > 30


def test_links_between_pages_are_absolute_in_the_plan(plain_run: Pipeline, aspose_run: Pipeline) -> None:
    for run in (plain_run, aspose_run):
        pages = run.read_json("page_plan.json")["pages"]
        known_urls = {page["token_mappings"]["ORIGIN"] + page["url_path"] for page in pages}
        for page in pages:
            assert page["cross_links"], page["output_path"]
            assert set(page["cross_links"]) <= known_urls
            assert all(link.startswith("https://") for link in page["cross_links"])


def test_real_hugo_serves_the_bundled_sample_where_the_plan_says(plain_run: Pipeline, tmp_path: Path) -> None:
    hugo_world.build_site(plain_run.site, tmp_path / "out")

    planned_urls = {page["url_path"] for page in plain_run.read_json("page_plan.json")["pages"]}
    assert planned_urls <= hugo_world.list_page_urls(tmp_path / "out")


def test_real_hugo_serves_five_hosts_where_the_plan_says(aspose_run: Pipeline, tmp_path: Path) -> None:
    for page in aspose_run.read_json("page_plan.json")["pages"]:
        host = page["token_mappings"]["ORIGIN"].removeprefix("https://")
        out = tmp_path / host
        if not out.exists():
            name = f"{host}.toml" if host.startswith("blog") else f"{host}/cells.toml"
            hugo_world.build_site(aspose_run.site, out, config=f"configs/{name}")
        below = page["url_path"] if host.startswith("blog") else page["url_path"][len("/cells") :]
        assert below in hugo_world.list_page_urls(out), page["url_path"]


def test_a_layout_without_platforms_leaves_them_out(tmp_path: Path) -> None:
    launch_sites.copy_sample(tmp_path / "source", "source")
    launch_sites.write_aspose_site(tmp_path / "site", "cells")
    run = _build_pipeline(
        tmp_path,
        profile="aspose",
        family="cells",
        required_sections=["kb", "blog"],
        layout_mode="v1",
    ).run_steps(*SOURCE_STEPS, "plan")

    assert [(page["output_path"], page["url_path"]) for page in run.read_json("page_plan.json")["pages"]] == [
        ("content/kb.aspose.org/cells/en/faq.md", "/cells/faq/"),
        ("content/kb.aspose.org/cells/en/troubleshooting.md", "/cells/troubleshooting/"),
        ("content/blog.aspose.org/cells/announcement/index.md", "/cells/announcement/"),
    ]


def test_the_same_inputs_give_the_same_bytes(plain_run: Pipeline, tmp_path: Path) -> None:
    again = _build_plain_pipeline(tmp_path).run_all()

    compared_names = {name for name in plain_run.inputs if not name.startswith(("resolved", "site_context"))}
    assert {name: plain_run.inputs[name] for name in compared_names} == {n: again.inputs[n] for n in compared_names}


def test_pages_lie_in_folders_where_the_site_has_them_in_folders(tmp_path: Path) -> None:
    launch_sites.copy_sample(tmp_path / "site", "site")
    folder = tmp_path / "site/content/docs/greetings"
    for name in ("installation", "getting-started"):
        (folder / name).mkdir()
        (folder / f"{name}.md").rename(folder / name / "index.md")
    launch_sites.copy_sample(tmp_path / "source", "source")
    run = _build_pipeline(tmp_path, required_sections=["docs"]).run_steps(*SOURCE_STEPS, "plan")

    pages = {page["output_path"]: page["url_path"] for page in run.read_json("page_plan.json")["pages"]}
    path = "content/docs/measurekit/installation/index.md"
    assert pages[path] == "/docs/measurekit/installation/"
    assert "content/docs/measurekit/_index.md" in pages


def test_a_site_whose_own_address_cannot_be_read_has_none() -> None:
    languages = {"languages": {"en": {"baseURL": "http://["}}}

    assert HugoUrlRules.from_settings({"baseurl": "http://[", **languages}).resolve_origin("en") == ""


def test_an_address_that_another_page_has_is_a_blocker(tmp_path: Path) -> None:
    launch_sites.copy_sample(tmp_path / "source", "source")
    launch_sites.copy_sample(tmp_path / "site", "site")
    other = tmp_path / "site/content/docs/measurekit/installation/index.md"
    other.parent.mkdir(parents=True)
    other.write_text("---\ntitle: Mine\n---\nText.\n")
    run = _build_pipeline(tmp_path).run_steps(*SOURCE_STEPS)

    error = _catch_tool_error(lambda: run.run_steps("plan"))

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
    launch_sites.copy_sample(tmp_path / "site", "site")
    run = _build_pipeline(tmp_path, family="bare").run_steps(*SOURCE_STEPS)

    error = _catch_tool_error(lambda: run.run_steps("plan"))

    assert error.details["error_code"] == "IA_PLANNER_PLAN_INCOMPLETE"
    assert {page["slug"] for page in error.details["missing"]} == {"getting-started", "installation"}


def test_a_language_without_templates_cannot_be_planned(tmp_path: Path) -> None:
    run = _build_plain_pipeline(tmp_path, locales=["de"]).run_steps(*SOURCE_STEPS)

    error = _catch_tool_error(lambda: run.run_steps("plan"))

    assert error.details["error_code"] == "IA_PLANNER_PLAN_INCOMPLETE"
    assert "'de'" in error.message


def test_other_languages_are_served_where_the_plan_says(tmp_path: Path) -> None:
    profile = tmp_path / "profiles/german"
    shutil.copytree(model.load_named_profile("plain").folder, profile)
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
        file.write_text((BASE_TEMPLATES_DIR / f"{name}.md").read_text().replace("## Pages", "## Seiten"))
    launch_sites.copy_sample(tmp_path / "source", "source")
    launch_sites.copy_sample(tmp_path / "site", "site")
    config = tmp_path / "site/hugo.toml"
    config.write_text("defaultContentLanguageInSubdir = true\n" + config.read_text() + "[languages.de]\n")
    run = _build_pipeline(
        tmp_path,
        profile="german",
        profiles=(tmp_path / "profiles",),
        locales=["en", "de"],
        required_sections=["docs"],
    ).run_all()

    hugo_world.build_site(run.site, tmp_path / "out")

    planned_urls = {p["output_path"]: p["url_path"] for p in run.read_json("page_plan.json")["pages"]}
    assert planned_urls["content/docs/measurekit/_index.de.md"] == "/de/docs/measurekit/"
    assert planned_urls["content/docs/measurekit/installation.md"] == "/en/docs/measurekit/installation/"
    assert len(planned_urls) == 8
    assert set(planned_urls.values()) <= hugo_world.list_page_urls(tmp_path / "out")
    german = run.read_pages()["content/docs/measurekit/_index.de.md"]
    assert "## Seiten" in german
    assert "(/de/docs/measurekit/installation/)" in german
    assert "(/en/" not in german


def test_a_page_outside_the_allowed_paths_is_never_planned(tmp_path: Path) -> None:
    run = _build_plain_pipeline(tmp_path, allowed_paths=["content/docs/measure", "content/reference/measurekit"])

    error = _catch_tool_error(lambda: run.run_steps(*SOURCE_STEPS, "plan"))

    assert error.code is ErrorCode.ALLOWED_PATHS_VIOLATION
