"""Tests of publishing a validated worktree: what is published is what was validated."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard, hash_worktree
from cleats.toolsets.launch.profiles.parts import BRANCH_TEMPLATE_WORDS, CHANGE_TEMPLATE_WORDS
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.workers import publish
from cleats.toolsets.launch.workers.publish import read_change
from tests.support.github_server import FakeForge, run_forge
from tests.support.launch_runs import TEST_RUN_ID, create_job

GIT_ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
VALIDATION_REPORT = {
    "schema_version": "1.0",
    "ok": True,
    "profile": "local",
    "gates": [{"name": "schema", "ok": True}, {"name": "links", "ok": True}],
    "issues": [],
    "manual_edits": False,
}
RUN_CONFIG = {
    "profile": "plain",
    "product_slug": "shop",
    "product_name": "Shop",
    "family": "shop",
    "target_platform": "python",
    "github_repo_url": "https://github.com/example/shop",
    "allowed_paths": ["content/docs"],
    "publish": {"driver": "git", "draft": False},
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[FakeForge]:
    with run_forge(tmp_path) as forge_server:
        yield forge_server


def build_validated_job(world: FakeForge, tmp_path: Path, **config: Any) -> WorkerJob:
    """Build a job over a worktree with three changes, which the last report covers."""
    full_config = {**RUN_CONFIG, "site_repo_url": str(world.repo.root), **config}
    base = world.list_branches()["main"]
    validated_job = create_job(
        tmp_path,
        worker="W9",
        config=full_config,
        artifacts={"validation_report.json": VALIDATION_REPORT},
        facts={"clone": {"site_sha": base, "repo_sha": "a" * 40}},
        secrets={"FORGE_TOKEN": "secret-token"},
        settings={"git_env": GIT_ENVIRON},
    )
    shutil.rmtree(validated_job.site)
    world.repo.run_git("clone", "--quiet", ".", str(validated_job.site))
    docs = validated_job.site / "content" / "docs"
    (docs / "new.md").write_text("new, without a last line end")
    (docs / "_index.md").write_text("---\ntitle: All docs\n---\n")
    (docs / "old.md").unlink()
    digest = anyio.run(hash_worktree, validated_job.site, base, GIT_ENVIRON)
    facts = {"validate:1": {"worktree_sha256": "0" * 64}, "validate:2": {"worktree_sha256": digest}}
    validated_job.facts.update(facts)  # type: ignore[attr-defined]
    return validated_job


def publish_job(validated_job: WorkerJob) -> dict[str, Any]:
    validated_job.facts["commit"] = anyio.run(publish.run_commit, validated_job)  # type: ignore[index]
    return dict(anyio.run(publish.run_request, validated_job))


def test_every_word_that_a_template_may_have_has_a_value(world: FakeForge, tmp_path: Path) -> None:
    service = {"commit_body_template": "".join(f"<{{{name}}}>" for name in sorted(CHANGE_TEMPLATE_WORDS))}
    publish = {
        "driver": "git",
        "draft": False,
        "branch": "/".join(f"{{{name}}}" for name in BRANCH_TEMPLATE_WORDS),
    }
    validated_job = build_validated_job(world, tmp_path, commit_service=service, publish=publish)

    made_of = anyio.run(read_change, validated_job)

    assert "{" not in made_of.branch + made_of.body


def test_the_worktree_becomes_a_commit_on_the_branch_of_its_run_and_a_request(world: FakeForge, tmp_path: Path) -> None:
    validated_job = build_validated_job(world, tmp_path)

    answer = publish_job(validated_job)

    branch = f"launch/{TEST_RUN_ID}/shop"
    sha = world.list_branches()[branch]
    assert answer == {"pr_url": f"local:site.git#{branch}", "branch": branch, "commit_sha": sha}
    name_status = world.repo.run_git("diff", "--name-status", "--no-renames", "main", sha)
    assert name_status.split() == [
        *("M", "content/docs/_index.md", "A", "content/docs/new.md", "D", "content/docs/old.md")
    ]
    pr = validated_job.read_json("pr.json")
    assert pr["affected_paths"] == [line.split("\t")[1] for line in name_status.splitlines()]
    assert pr["validation_summary"] == {
        "ok": True,
        "profile": "local",
        "gates_passed": 2,
        "gates_failed": 0,
    }
    assert str(tmp_path) not in validated_job.read("pr.json").decode()


@pytest.mark.parametrize("driver", ["service", "github"])
def test_a_service_gets_the_token_that_the_run_names_and_the_same_files(
    world: FakeForge, tmp_path: Path, driver: str
) -> None:
    endpoint = {"endpoint_url": world.base, "github_token_env": "FORGE_TOKEN"}
    validated_job = build_validated_job(
        world,
        tmp_path,
        site_repo_url="https://forge.example/team/site",
        publish={
            "driver": driver,
            "draft": True,
            "endpoint_url": world.base,
            "token_env": "FORGE_TOKEN",
        },
        commit_service=endpoint,
    )

    answer = publish_job(validated_job)

    sha = world.list_branches()[answer["branch"]]
    assert world.repo.run_git("show", f"{sha}:content/docs/new.md") == "new, without a last line end"
    assert world.repo.run_git("show", f"{sha}:content/docs/_index.md").endswith("All docs\n---")
    assert "old.md" not in world.repo.run_git("ls-tree", "-r", "--name-only", sha)
    assert answer["pr_url"] == "https://forge.example/site/pull/1"


def test_the_patches_of_a_change_lead_from_the_base_to_the_very_bytes(world: FakeForge, tmp_path: Path) -> None:
    validated_job = build_validated_job(world, tmp_path)
    publication = anyio.run(read_change, validated_job)
    fresh = tmp_path / "fresh"
    world.repo.run_git("clone", "--quiet", ".", str(fresh))

    patches.apply_bundle(publication.bundle, WorktreeGuard(fresh, ["content/docs"]))

    for file in publication.files:
        target = fresh / file.path
        assert (target.read_bytes() if target.exists() else None) == file.content


def test_a_worktree_that_changed_after_its_report_is_not_published(world: FakeForge, tmp_path: Path) -> None:
    validated_job = build_validated_job(world, tmp_path)
    (validated_job.site / "content/docs/new.md").write_text("slipped in")

    with pytest.raises(ToolError) as caught:
        publish_job(validated_job)

    assert caught.value.code is ErrorCode.ILLEGAL_STATE
    assert caught.value.details == {"reason": "worktree_changed"}
    assert list(world.list_branches()) == ["main"]


def test_a_change_outside_the_allowed_paths_is_not_published(world: FakeForge, tmp_path: Path) -> None:
    validated_job = build_validated_job(world, tmp_path, allowed_paths=["content/docs/new.md"])

    with pytest.raises(ToolError) as caught:
        publish_job(validated_job)

    assert caught.value.code is ErrorCode.ALLOWED_PATHS_VIOLATION
    assert list(world.list_branches()) == ["main"]


def test_a_run_without_a_change_has_nothing_to_publish(world: FakeForge, tmp_path: Path) -> None:
    validated_job = build_validated_job(world, tmp_path)
    base = world.list_branches()["main"]
    shutil.rmtree(validated_job.site)
    world.repo.run_git("clone", "--quiet", ".", str(validated_job.site))
    digest = anyio.run(hash_worktree, validated_job.site, base, GIT_ENVIRON)
    validated_job.facts["validate:2"]["worktree_sha256"] = digest

    with pytest.raises(ToolError) as caught:
        publish_job(validated_job)

    assert caught.value.details == {"reason": "no_changes"}


def test_a_token_that_is_not_set_is_said_by_its_name(world: FakeForge, tmp_path: Path) -> None:
    validated_job = build_validated_job(
        world,
        tmp_path,
        publish={"driver": "github", "draft": False, "token_env": "OTHER_TOKEN"},
    )

    with pytest.raises(ToolError) as caught:
        publish_job(validated_job)

    assert caught.value.code is ErrorCode.COMMIT_SERVICE_ERROR
    assert caught.value.details == {"variable": "OTHER_TOKEN"}


def test_a_name_in_a_signature_cannot_end_it(world: FakeForge, tmp_path: Path) -> None:
    evil = "Eve <e@x> 1 +0000\ncommitter Mallory"
    validated_job = build_validated_job(
        world,
        tmp_path,
        commit_service={"endpoint_url": world.base, "author_name": evil, "author_email": "a\nb"},
    )

    answer = publish_job(validated_job)

    signature = world.repo.run_git("show", "-s", "--format=%an|%ae|%cn", answer["commit_sha"])
    assert signature == "Eve e@x 1 +0000 committer Mallory|a b|Eve e@x 1 +0000 committer Mallory"
