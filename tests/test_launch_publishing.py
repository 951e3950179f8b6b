"""From a validated worktree to an open request: what is published is what was validated."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.fence import Fence
from cleats.toolsets.launch.patching.worktree import worktree_hash
from cleats.toolsets.launch.profiles.parts import BRANCH_WORDS, WORDS
from cleats.toolsets.launch.publish import change
from cleats.toolsets.launch.workers import commit, request
from cleats.toolsets.launch.workers.job import Job
from tests.forge import Forge, forge
from tests.launch_world import RUN_ID, job

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
REPORT = {
    "schema_version": "1.0",
    "ok": True,
    "profile": "local",
    "gates": [{"name": "schema", "ok": True}, {"name": "links", "ok": True}],
    "issues": [],
    "manual_edits": False,
}
CONFIG = {
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
def world(tmp_path: Path) -> Iterator[Forge]:
    with forge(tmp_path) as made:
        yield made


def validated(world: Forge, tmp_path: Path, **config: Any) -> Job:
    """A job over a worktree with three changes, which the last report is about."""
    given = {**CONFIG, "site_repo_url": str(world.repo.root), **config}
    base = world.branches()["main"]
    made = job(
        tmp_path,
        worker="W9",
        config=given,
        artifacts={"validation_report.json": REPORT},
        facts={"clone": {"site_sha": base, "repo_sha": "a" * 40}},
        secrets={"FORGE_TOKEN": "secret-token"},
        settings={"git_env": ENV},
    )
    shutil.rmtree(made.site)
    world.repo.git("clone", "--quiet", ".", str(made.site))
    docs = made.site / "content" / "docs"
    (docs / "new.md").write_text("new, without a last line end")
    (docs / "_index.md").write_text("---\ntitle: All docs\n---\n")
    (docs / "old.md").unlink()
    digest = anyio.run(worktree_hash, made.site, base, ENV)
    facts = {"validate:1": {"worktree_sha256": "0" * 64}, "validate:2": {"worktree_sha256": digest}}
    made.facts.update(facts)  # type: ignore[attr-defined]
    return made


def published(made: Job) -> dict[str, Any]:
    made.facts["commit"] = anyio.run(commit.run, made)  # type: ignore[index]
    return dict(anyio.run(request.run, made))


def test_every_word_that_a_template_may_have_has_a_value(world: Forge, tmp_path: Path) -> None:
    service = {"commit_body_template": "".join(f"<{{{name}}}>" for name in sorted(WORDS))}
    publish = {
        "driver": "git",
        "draft": False,
        "branch": "/".join(f"{{{name}}}" for name in BRANCH_WORDS),
    }
    made = validated(world, tmp_path, commit_service=service, publish=publish)

    made_of = anyio.run(change.read, made)

    assert "{" not in made_of.branch + made_of.body


def test_the_worktree_becomes_a_commit_on_the_branch_of_its_run_and_a_request(
    world: Forge, tmp_path: Path
) -> None:
    made = validated(world, tmp_path)

    answer = published(made)

    branch = f"launch/{RUN_ID}/shop"
    sha = world.branches()[branch]
    assert answer == {"pr_url": f"local:site.git#{branch}", "branch": branch, "commit_sha": sha}
    listed = world.repo.git("diff", "--name-status", "--no-renames", "main", sha)
    assert listed.split() == [
        *("M", "content/docs/_index.md", "A", "content/docs/new.md", "D", "content/docs/old.md")
    ]
    pr = made.json("pr.json")
    assert pr["affected_paths"] == [line.split("\t")[1] for line in listed.splitlines()]
    assert pr["validation_summary"] == {
        "ok": True,
        "profile": "local",
        "gates_passed": 2,
        "gates_failed": 0,
    }
    assert str(tmp_path) not in made.read("pr.json").decode()


@pytest.mark.parametrize("driver", ["service", "github"])
def test_a_service_gets_the_token_that_the_run_names_and_the_same_files(
    world: Forge, tmp_path: Path, driver: str
) -> None:
    endpoint = {"endpoint_url": world.base, "github_token_env": "FORGE_TOKEN"}
    made = validated(
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

    answer = published(made)

    sha = world.branches()[answer["branch"]]
    assert world.repo.git("show", f"{sha}:content/docs/new.md") == "new, without a last line end"
    assert world.repo.git("show", f"{sha}:content/docs/_index.md").endswith("All docs\n---")
    assert "old.md" not in world.repo.git("ls-tree", "-r", "--name-only", sha)
    assert answer["pr_url"] == "https://forge.example/site/pull/1"


def test_the_patches_of_a_change_lead_from_the_base_to_the_very_bytes(
    world: Forge, tmp_path: Path
) -> None:
    made = validated(world, tmp_path)
    what = anyio.run(change.read, made)
    fresh = tmp_path / "fresh"
    world.repo.git("clone", "--quiet", ".", str(fresh))

    patches.apply(what.bundle, Fence(fresh, ["content/docs"]))

    for file in what.files:
        there = fresh / file.path
        assert (there.read_bytes() if there.exists() else None) == file.content


def test_a_worktree_that_changed_after_its_report_is_not_published(
    world: Forge, tmp_path: Path
) -> None:
    made = validated(world, tmp_path)
    (made.site / "content/docs/new.md").write_text("slipped in")

    with pytest.raises(ToolError) as caught:
        published(made)

    assert caught.value.code is ErrorCode.ILLEGAL_STATE
    assert caught.value.details == {"reason": "worktree_changed"}
    assert list(world.branches()) == ["main"]


def test_a_change_outside_the_allowed_paths_is_not_published(world: Forge, tmp_path: Path) -> None:
    made = validated(world, tmp_path, allowed_paths=["content/docs/new.md"])

    with pytest.raises(ToolError) as caught:
        published(made)

    assert caught.value.code is ErrorCode.ALLOWED_PATHS_VIOLATION
    assert list(world.branches()) == ["main"]


def test_a_run_without_a_change_has_nothing_to_publish(world: Forge, tmp_path: Path) -> None:
    made = validated(world, tmp_path)
    base = world.branches()["main"]
    shutil.rmtree(made.site)
    world.repo.git("clone", "--quiet", ".", str(made.site))
    digest = anyio.run(worktree_hash, made.site, base, ENV)
    made.facts["validate:2"]["worktree_sha256"] = digest

    with pytest.raises(ToolError) as caught:
        published(made)

    assert caught.value.details == {"reason": "no_changes"}


def test_a_token_that_is_not_set_is_said_by_its_name(world: Forge, tmp_path: Path) -> None:
    made = validated(
        world,
        tmp_path,
        publish={"driver": "github", "draft": False, "token_env": "OTHER_TOKEN"},
    )

    with pytest.raises(ToolError) as caught:
        published(made)

    assert caught.value.code is ErrorCode.COMMIT_SERVICE_ERROR
    assert caught.value.details == {"variable": "OTHER_TOKEN"}


def test_a_name_in_a_signature_cannot_end_it(world: Forge, tmp_path: Path) -> None:
    evil = "Eve <e@x> 1 +0000\ncommitter Mallory"
    made = validated(
        world,
        tmp_path,
        commit_service={"endpoint_url": world.base, "author_name": evil, "author_email": "a\nb"},
    )

    answer = published(made)

    who = world.repo.git("show", "-s", "--format=%an|%ae|%cn", answer["commit_sha"])
    assert who == "Eve e@x 1 +0000 committer Mallory|a b|Eve e@x 1 +0000 committer Mallory"
