"""Tests of the first step of a run: it clones both repositories and describes the site."""

import os
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.site import front_matter_contract, hugo
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.workers import ingest
from tests.support.git_repositories import GitCheckout
from tests.support.launch_runs import create_job
from tests.support.launch_sources import write_tree

pytestmark = pytest.mark.anyio

GIT_ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
SITE_LAYOUT = {"content_root": "content", "subdomain_roots": {"docs": "content/docs", "kb": "kb"}}


def build_job(tmp_path: Path, **changes: Any) -> WorkerJob:
    source = GitCheckout.create(tmp_path / "kettle")
    source.write_file("src/kettle.py", "BOIL = 100\n")
    source.commit(README__md="# Kettle\n")
    site = GitCheckout.create(tmp_path / "pages")
    site.write_file("content/docs/a.md", "---\ntitle: A\nweight: 1\n---\nText\n")
    site.write_file("content/kb/a.md", "---\ntitle: B\ndraft: false\n---\nText\n")
    site.commit(hugo__toml='defaultContentLanguage = "en"\n')
    config = {
        "github_repo_url": str(source.root),
        "github_ref": source.head_commit,
        "site_repo_url": site.root.as_uri(),
        "site_ref": "main",
        "site_layout": SITE_LAYOUT,
        "profile": "plain",
        "family": "kettle",
        "required_sections": ["docs"],
        **changes,
    }
    return create_job(tmp_path / "run", config=config, settings={"git_env": GIT_ENVIRON})


async def test_both_repositories_lie_in_the_run_at_their_commits(tmp_path: Path) -> None:
    step = build_job(tmp_path)

    facts = await ingest.run_clone(step)

    refs = step.read_json("resolved_refs.json")
    assert (step.repo / "src/kettle.py").is_file()
    assert (step.site / "hugo.toml").is_file()
    assert refs["repo"]["resolved_sha"] == facts["repo_sha"] == step.config["github_ref"]
    assert refs["site"]["requested_ref"] == "main"
    assert refs["site"]["repo_url"] == "local:pages"
    assert step.read_json("site_context.json")["site"]["clone_path"] == "work/site"


async def test_a_repository_of_workflows_is_fetched_and_its_commit_told(tmp_path: Path) -> None:
    flows = GitCheckout.create(tmp_path / "flows")
    flows.commit(build__yml="on: push\n")
    step = build_job(tmp_path, workflows_repo_url=str(flows.root), workflows_ref="main")

    await ingest.run_clone(step)

    workflows = step.read_json("site_context.json")["workflows"]
    assert (step.root / workflows["clone_path"] / "build.yml").is_file()
    assert workflows["resolved_sha"] == flows.head_commit
    assert step.read_json("resolved_refs.json")["workflows"]["repo_url"] == "local:flows"


async def test_the_same_inputs_give_the_same_bytes_and_no_path_of_the_machine(
    tmp_path: Path,
) -> None:
    step = build_job(tmp_path)
    await ingest.run_clone(step)
    await ingest.run_inventory(step)
    first = dict(step.outputs)

    await ingest.run_clone(step)
    await ingest.run_inventory(step)

    assert step.outputs == first
    assert all(str(tmp_path).encode() not in step.read(name) for name in first)


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"github_ref": "0" * 40}, ErrorCode.INVALID_INPUT, "github_ref"),
        ({"github_ref": "main"}, ErrorCode.INVALID_INPUT, "github_ref"),
        ({"github_repo_url": "/nonexistent/kettle"}, ErrorCode.REPO_NOT_FOUND, "github_repo_url"),
        ({"site_repo_url": ""}, ErrorCode.INVALID_INPUT, "site_repo_url"),
        ({"site_ref": "no-such-branch"}, ErrorCode.INVALID_INPUT, "site_ref"),
    ],
)
async def test_a_wrong_address_or_commit_is_said_by_the_name_of_its_field(
    tmp_path: Path, changes: dict[str, str], code: ErrorCode, field: str
) -> None:
    with pytest.raises(ToolError) as error_info:
        await ingest.run_clone(build_job(tmp_path, **changes))

    assert error_info.value.code is code
    assert error_info.value.details["field"] == field
    assert not error_info.value.retryable


async def test_a_repository_without_files_stops_the_run(tmp_path: Path) -> None:
    refs = {"repo": {"repo_url": "local:kettle", "resolved_sha": "a" * 40}}
    step = create_job(tmp_path, artifacts={"resolved_refs.json": refs})

    with pytest.raises(ToolError) as error_info:
        await ingest.run_inventory(step)

    assert error_info.value.details["reason"] == "REPO_EMPTY"


async def test_front_matter_is_learned_from_the_pages_of_each_section(tmp_path: Path) -> None:
    step = build_job(tmp_path)

    await ingest.run_clone(step)

    sections = step.read_json("frontmatter_contract.json")["sections"]
    assert sections["docs"]["required_keys"] == ["title", "weight"]
    assert sections["kb"]["key_types"] == {"draft": "boolean", "title": "string"}


async def test_a_contract_knows_required_keys_types_and_habits(tmp_path: Path) -> None:
    pages = {
        f"content/docs/p{number:02}.md": f"---\ntitle: P{number}\ntype: docs\n"
        + ("date: 2026-01-02\n" if number else "")
        + (f"weight: {number}\n" if number < 5 else "weight: 1.5\n")
        + ("tags: [a, b]\n" if number == 3 else "")
        + ("mixed: 1\n" if number == 4 else "mixed: a\n")
        + "---\n"
        for number in range(12)
    }
    broken = {"content/docs/z.md": "---\ntitle: [\n---\n"}

    contract = front_matter_contract.derive_contract(
        write_tree(tmp_path, pages | broken), {"docs": "content/docs", "kb": "content/kb"}, "u", "s"
    )["sections"]

    assert list(contract) == ["docs"]
    assert contract["docs"]["sample_size"] == 12
    assert contract["docs"]["required_keys"] == ["date", "mixed", "title", "type", "weight"]
    assert contract["docs"]["optional_keys"] == ["tags"]
    assert contract["docs"]["key_types"] == {
        "date": "date",
        "mixed": "unknown",
        "tags": "array_string",
        "title": "string",
        "type": "string",
        "weight": "number",
    }
    assert contract["docs"]["default_values"]["type"] == "docs"


def read_site_facts(root: Path, files: dict[str, str]) -> dict[str, Any]:
    return hugo.derive_hugo_facts(hugo.read_hugo_config(write_tree(root, files)))


async def test_hugo_facts_are_read_from_any_of_its_forms(tmp_path: Path) -> None:
    toml = read_site_facts(
        tmp_path / "toml",
        {
            "hugo.toml": "defaultContentLanguage = 'de'\ndefaultContentLanguageInSubdir = true\n"
            "[permalinks]\nblog = '/:year/:slug/'\n[languages.de]\nweight = 1\n[languages.en]\n"
        },
    )
    split = read_site_facts(
        tmp_path / "split",
        {
            "config/_default/hugo.yaml": "defaultContentLanguage: fr\n",
            "config/_default/languages.toml": "[fr]\nweight = 1\n[it]\nweight = 2\n",
            "config/_default/taxonomies.json": '{"tag": "tags"}',
            "config/production/hugo.yaml": "defaultContentLanguage: xx\n",
        },
    )
    bare = read_site_facts(tmp_path / "bare", {"config.json": '{"title": "x"}', "hugo.toml": "= broken"})

    both = read_site_facts(
        tmp_path / "both",
        {
            "hugo.toml": "defaultContentLanguage = 'sv'\n",
            "config.toml": "defaultContentLanguage = 'da'\n",
        },
    )

    assert both["default_language"] == "sv"
    assert (toml["languages"], toml["default_language"]) == (["de", "en"], "de")
    assert toml["default_language_in_subdir"] is True
    assert toml["permalinks"] == {"blog": "/:year/:slug/"}
    assert (split["languages"], split["default_language"]) == (["fr", "it"], "fr")
    assert split["taxonomies"] == {"tag": "tags"}
    assert (bare["languages"], bare["unreadable_files"]) == (["en"], ["hugo.toml"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hugo.yaml", "date: 2026-13-99\n"),
        ("hugo.yaml", "draft: !!bool x\n"),
        ("hugo.yaml", "- a\n"),
        ("hugo.toml", f"a = {'1' * 5000}\n"),
        pytest.param("hugo.json", '{"a": ' + "[" * 100_000, id="deep"),
    ],
)
async def test_a_configuration_of_hugo_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str) -> None:
    assert read_site_facts(tmp_path, {name: text})["unreadable_files"] == [name]


async def test_a_site_with_a_configuration_for_each_build_has_a_matrix(tmp_path: Path) -> None:
    files = {
        "configs/docs.example.org/kettle.toml": "title = 'k'\n",
        "configs/docs.example.org/common.toml": "title = 'c'\n",
        "configs/blog.example.org.toml": "title = 'b'\n",
    }
    site = write_tree(tmp_path, files)

    context = hugo.build_hugo_context(site, hugo.read_hugo_config(site))

    assert context["config_root"] == "configs"
    assert [(build["subdomain"], build["family"]) for build in context["build_matrix"]] == [
        ("blog.example.org", ""),
        ("docs.example.org", "kettle"),
    ]


async def test_a_link_out_of_the_checkout_is_never_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    root = tmp_path / "repo"
    source = write_tree(root, {"a.py": "1\n"})
    (root / "link.md").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(tmp_path)

    assert CheckoutTree(source.root).paths == ("a.py",)
    assert source.read_text("link.md") is None
