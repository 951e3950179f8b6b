"""Tests of publishing: three drivers, each called twice as after a lost answer or a kill."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.http_client import HttpReply
from cleats.toolsets.launch.publish.git_publisher import GitPublisher
from cleats.toolsets.launch.publish.http_publishers import (
    GITHUB_HEADERS,
    RETRIES,
    CommitServicePublisher,
    GitHubPublisher,
    ServiceClient,
)
from cleats.toolsets.launch.publish.model import ChangedFile, ChangePublisher, RunChange
from tests.support.github_server import FakeForge, run_forge
from tests.support.requirements import requirement

GIT_ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
NEW_PAGE = b"---\ntitle: New\n---\nWith \xc3\xa9 and no last line end"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[FakeForge]:
    with run_forge(tmp_path) as forge_server:
        yield forge_server


def build_change(world: FakeForge, **changes: Any) -> RunChange:
    base = world.list_branches()["main"]
    files = [
        ChangedFile("content/docs/new.md", NEW_PAGE),
        ChangedFile('content/docs/odd "name".md', b"odd\n"),
        ChangedFile("content/docs/old.md", None),
    ]
    patches = [
        {"path": file.path, "type": "create_file", "new_content": file.content.decode()}
        for file in files
        if file.content is not None
    ]
    patches.append({"path": "content/docs/old.md", "type": "delete_file"})
    facts: dict[str, Any] = {
        "run_id": "r_2026-01-21T10-00-00Z_abcd1234",
        "repo_url": "https://forge.example/team/site.git",
        "base_sha": base,
        "base_branch": "",
        "branch": "launch/r_2026-01-21T10-00-00Z_abcd1234/shop",
        "files": files,
        "allowed_paths": ["content/docs"],
        "title": "Launch Shop",
        "message": "Launch Shop",
        "body": "Three pages.",
        "author": ("Cleats", "cleats@example.com"),
        "moment": 1_768_989_600,
        "bundle": {"schema_version": "1.0", "patches": patches},
    }
    return RunChange(**{**facts, **changes})


FAST_RETRIES = replace(RETRIES, pause=0.001)

PublisherFactory = Callable[[FakeForge, Path], tuple[ChangePublisher, RunChange]]


def create_git_publisher(world: FakeForge, tmp_path: Path) -> tuple[ChangePublisher, RunChange]:
    world.repo.run_git("clone", "--quiet", ".", str(tmp_path / "site"))
    change = build_change(world, repo_url=str(world.repo.root))
    return GitPublisher(tmp_path / "site", GIT_ENVIRON), change


def create_service_publisher(world: FakeForge, tmp_path: Path) -> tuple[ChangePublisher, RunChange]:
    service = ServiceClient(name="The commit service", base_url=world.base, token=world.token, retries=FAST_RETRIES)
    return CommitServicePublisher(service), build_change(world)


def create_github_publisher(world: FakeForge, tmp_path: Path) -> tuple[ChangePublisher, RunChange]:
    service = ServiceClient(
        name="The forge", base_url=world.base, token=world.token, headers=GITHUB_HEADERS, retries=FAST_RETRIES
    )
    return GitHubPublisher(service), build_change(world)


every_driver = pytest.mark.parametrize(
    "driver", [create_git_publisher, create_service_publisher, create_github_publisher]
)
over_http = pytest.mark.parametrize("driver", [create_service_publisher, create_github_publisher])


def publish_change(publisher: ChangePublisher, change: RunChange) -> tuple[str, str]:
    async def commit_and_request() -> tuple[str, str]:
        commit = await publisher.commit(change)
        return commit, (await publisher.open_request(change, commit)).url

    return anyio.run(commit_and_request)


@every_driver
def test_a_change_becomes_one_commit_on_its_branch_with_exactly_its_files(
    world: FakeForge, tmp_path: Path, driver: PublisherFactory
) -> None:
    publisher, change = driver(world, tmp_path)

    commit, _ = publish_change(publisher, change)

    assert world.list_branches()[change.branch] == commit
    assert world.repo.run_git("rev-parse", f"{commit}^") == change.base_sha
    name_status = world.repo.run_git("diff", "--name-status", "--no-renames", change.base_sha, commit)
    assert [line.split("\t")[0] for line in name_status.splitlines()] == ["A", "A", "D"]
    assert world.repo.run_git("show", f"{commit}:content/docs/new.md").encode() == NEW_PAGE.strip()


@every_driver
def test_asking_twice_makes_no_second_commit_and_no_second_request(
    world: FakeForge, tmp_path: Path, driver: PublisherFactory
) -> None:
    publisher, change = driver(world, tmp_path)

    first = publish_change(publisher, change)
    refs = world.list_branches()
    again = publish_change(publisher, change)

    assert again == first
    assert world.list_branches() == refs
    assert len(world.pulls) <= 1


@over_http
@pytest.mark.parametrize("end", ["commit", "refs", "open_pr", "pulls", "trees"])
def test_an_answer_that_is_lost_is_asked_for_again_and_nothing_is_doubled(
    world: FakeForge, tmp_path: Path, driver: PublisherFactory, end: str
) -> None:
    publisher, change = driver(world, tmp_path)
    world.lost_answers.append(end)

    commit, url = publish_change(publisher, change)

    assert world.list_branches()[change.branch] == commit
    assert [pull["html_url"] for pull in world.pulls] == [url]


@over_http
def test_a_service_that_is_away_for_a_moment_is_waited_for(
    world: FakeForge, tmp_path: Path, driver: PublisherFactory
) -> None:
    publisher, change = driver(world, tmp_path)
    world.failure_statuses = {"commit": [503, 502, 504], "trees": [503, 502, 504]}

    commit, _ = publish_change(publisher, change)

    assert world.list_branches()[change.branch] == commit


@pytest.mark.parametrize("before", [0, 290, 299, 400])
def test_a_token_that_a_service_repeats_is_told_nobody_not_even_in_part(before: int) -> None:
    service = ServiceClient(name="The forge", base_url="http://127.0.0.1:1", token="t0ken-of-the-forge")
    repeated_token = "x" * before + " " + service.token

    error = service.error_from_reply(
        HttpReply(403, json.dumps({"message": repeated_token, "code": repeated_token}).encode()), "the branch"
    )

    assert "t0k" not in str(error)
    assert isinstance(error, ToolError)
    assert "t0k" not in str(error.details)


@over_http
@requirement("e:code:commit-service", "e:accept:retryable")
@pytest.mark.parametrize(
    ("status", "retryable", "tries"),
    [(400, False, 1), (403, False, 1), (429, True, 1), (500, True, 1), (503, True, 4)],
)
def test_a_refusal_says_honestly_whether_another_try_can_help(
    world: FakeForge, tmp_path: Path, driver: PublisherFactory, *, status: int, retryable: bool, tries: int
) -> None:
    publisher, change = driver(world, tmp_path)
    world.failure_statuses = {"commit": [status] * 9, "trees": [status] * 9}
    world.retry_after = "17"

    with pytest.raises(ToolError) as caught:
        publish_change(publisher, change)

    request_paths = [path for _, path in world.requests if path.endswith(("commit", "trees"))]
    assert caught.value.code is ErrorCode.COMMIT_SERVICE_ERROR
    assert (caught.value.retryable, len(request_paths)) == (retryable, tries)
    assert caught.value.details["status"] == status
    assert caught.value.details["retry_after_s"] == 17.0
    assert change.branch not in world.list_branches()


@pytest.mark.parametrize("place", ["blobs", "trees", "commits", "pulls"])
def test_an_answer_of_a_forge_that_is_not_its_own_is_a_failure_to_publish(
    world: FakeForge, tmp_path: Path, place: str
) -> None:
    publisher, change = create_github_publisher(world, tmp_path)
    world.failure_statuses = {place: [200]}

    with pytest.raises(ToolError) as caught:
        publish_change(publisher, change)

    assert caught.value.code is ErrorCode.COMMIT_SERVICE_ERROR
    assert caught.value.retryable
    assert "The forge answered" in caught.value.message


@over_http
def test_a_token_that_is_not_valid_is_refused_and_never_told(
    world: FakeForge, tmp_path: Path, driver: PublisherFactory
) -> None:
    publisher, change = driver(world, tmp_path)
    world.token = "another"

    with pytest.raises(ToolError) as caught:
        publish_change(publisher, change)

    assert not caught.value.retryable
    assert "secret-token" not in f"{caught.value} {caught.value.details} {publisher}"


@over_http
def test_a_service_that_cannot_be_reached_is_a_reason_to_try_again_later(
    world: FakeForge, tmp_path: Path, driver: PublisherFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher, change = driver(world, tmp_path)
    publisher.service.base_url = "http://127.0.0.1:9"  # type: ignore[attr-defined]

    with pytest.raises(ToolError) as caught:
        publish_change(publisher, change)

    assert caught.value.code is ErrorCode.COMMIT_SERVICE_ERROR
    assert caught.value.retryable
    assert caught.value.details["attempts"] == RETRIES.tries


@every_driver
def test_a_branch_that_somebody_else_made_is_left_alone(
    world: FakeForge, tmp_path: Path, driver: PublisherFactory
) -> None:
    publisher, change = driver(world, tmp_path)
    world.repo.run_git("update-ref", f"refs/heads/{change.branch}", change.base_sha)

    with pytest.raises(ToolError) as caught:
        publish_change(publisher, change)

    assert caught.value.code is ErrorCode.COMMIT_SERVICE_ERROR
    assert not caught.value.retryable
    assert world.list_branches()[change.branch] == change.base_sha


@pytest.mark.parametrize("driver", [create_git_publisher, create_github_publisher])
def test_a_run_replaces_its_own_earlier_commit_when_its_worktree_changed_after_it(
    world: FakeForge, tmp_path: Path, driver: PublisherFactory
) -> None:
    publisher, change = driver(world, tmp_path)
    first, _ = publish_change(publisher, change)
    files = [ChangedFile("content/docs/new.md", b"changed\n"), *change.files[1:]]

    second, _ = publish_change(publisher, replace(change, files=files, earlier=[first]))

    assert second != first
    assert world.list_branches()[change.branch] == second
    assert world.repo.run_git("rev-parse", f"{second}^") == change.base_sha


def test_a_plain_remote_keeps_the_request_as_an_object_that_can_be_read(world: FakeForge, tmp_path: Path) -> None:
    publisher, change = create_git_publisher(world, tmp_path)

    commit, url = publish_change(publisher, change)

    ref = f"refs/cleats/requests/{change.branch}"
    assert world.repo.run_git("rev-parse", f"{ref}^{{commit}}") == commit
    assert "Launch Shop\n\nThree pages." in world.repo.run_git("cat-file", "tag", ref)
    assert url == f"local:site.git#{change.branch}"


def test_a_remote_that_is_gone_is_no_reason_to_try_again(world: FakeForge, tmp_path: Path) -> None:
    publisher, change = create_git_publisher(world, tmp_path)

    with pytest.raises(ToolError) as caught:
        publish_change(publisher, replace(change, repo_url=str(tmp_path / "nowhere.git")))

    assert caught.value.code is ErrorCode.COMMIT_SERVICE_ERROR
    assert not caught.value.retryable
    assert str(tmp_path) not in f"{caught.value} {caught.value.details}"


def test_a_remote_whose_rules_refuse_the_branch_is_told_as_that(world: FakeForge, tmp_path: Path) -> None:
    publisher, change = create_git_publisher(world, tmp_path)
    folder = world.repo.run_git("rev-parse", "--absolute-git-dir")
    hook = Path(folder) / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)

    with pytest.raises(ToolError) as caught:
        publish_change(publisher, change)

    assert caught.value.message.endswith("git push failed: the remote rejected the push (pre-receive hook declined).")
    assert caught.value.hint == "Change the rules of the remote to accept the branch, then open the pull request again."
    assert caught.value.details == {"reason": "push_refused"}
    assert not caught.value.retryable


def test_a_branch_that_somebody_else_writes_just_now_can_be_tried_again(world: FakeForge, tmp_path: Path) -> None:
    publisher, change = create_git_publisher(world, tmp_path)
    folder = world.repo.run_git("rev-parse", "--absolute-git-dir")
    lock = Path(folder) / "refs" / "heads" / f"{change.branch}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()

    with pytest.raises(ToolError) as caught:
        publish_change(publisher, change)
    lock.unlink()

    assert caught.value.details == {"reason": "push_raced"}
    assert caught.value.retryable
    assert publish_change(publisher, change)


def test_the_key_of_a_request_is_a_uuid_of_the_change_and_of_what_is_asked(
    world: FakeForge,
) -> None:
    change = build_change(world)
    other = replace(change, files=[ChangedFile("content/docs/new.md", b"other")])

    keys = {change.idempotency_key("commit"), change.idempotency_key("request"), other.idempotency_key("commit")}

    assert len(keys) == 3
    assert {UUID(key).version for key in keys} == {4}
    assert change.idempotency_key("commit") == build_change(world).idempotency_key("commit")
