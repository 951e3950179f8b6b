"""`search` in the repositories of a workspace: one answer, merged by score."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode
from tests.support.indexes import IndexedRepository
from tests.support.maintenance import MaintenanceClient, create_maintenance_client
from tests.support.requirements import requirement


@pytest.fixture
def upkeep(tmp_path: Path) -> MaintenanceClient:
    upkeep = create_maintenance_client(tmp_path)
    upkeep.repository.build_index()
    library = IndexedRepository(tmp_path / "other", cache_name="../cache")
    library.write_file("lib/core.py", "def first_of_all(value):\n    return value\n")
    library.write_file("README.md", "# Library\n\nWhat comes first.\n")
    library.build_index()
    return upkeep


def write_workspace(upkeep: MaintenanceClient, *repos: dict[str, Any], folder: Path | None = None) -> str:
    path = (folder or upkeep.repository.folder) / "both.jsonc"
    path.write_text(json.dumps({"schemaVersion": 1, "repos": repos}))
    return str(path)


APP_REPO = {"root": "project", "alias": "app"}
LIBRARY_REPO = {"root": "other/project", "alias": "library"}


@requirement("a:tools:workspace_status")
def test_hits_of_all_repositories_are_merged_by_score(upkeep: MaintenanceClient) -> None:
    path = write_workspace(upkeep, APP_REPO, LIBRARY_REPO)
    answer_by_alias = {
        alias: upkeep.expect_result("search", query="first", repoPath=str(upkeep.repository.folder / root))
        for alias, root in (("app", "project"), ("library", "other/project"))
    }

    both = upkeep.expect_result("search", query="first", workspacePath=path)

    for mode in ("code", "prose", "extractedProse"):
        expected = [{**hit, "repo": alias} for alias, answer in answer_by_alias.items() for hit in answer[mode]]
        expected.sort(key=lambda hit: -hit["score"])
        assert both[mode] == expected[: len(both[mode])]
    assert {hit["repo"] for hit in both["code"]} == {"app", "library"}
    assert both["stats"]["chunks"] == sum(item["stats"]["chunks"] for item in answer_by_alias.values())
    assert [item["alias"] for item in both["stats"]["repos"]] == ["app", "library"]


def test_files_of_one_path_in_two_repositories_stay_apart(upkeep: MaintenanceClient) -> None:
    path = write_workspace(upkeep, APP_REPO, LIBRARY_REPO)

    both = upkeep.expect_result("search", query="title library", mode="prose", output="full", workspacePath=path)

    groups = {(file_group["repo"], file_group["file"]) for file_group in both["bundles"]["groups"]}
    assert groups >= {("app", "README.md"), ("library", "README.md")}
    for group in both["bundles"]["groups"]:
        for hit in group["hits"]:
            assert both[hit["mode"]][hit["index"]]["repo"] == group["repo"]


def test_no_more_hits_come_than_are_asked_for(upkeep: MaintenanceClient) -> None:
    path = write_workspace(upkeep, APP_REPO, LIBRARY_REPO)

    both = upkeep.expect_result("search", query="first value", top=1, workspacePath=path)

    assert len(both["code"]) == 1


def test_what_is_switched_off_or_has_no_index_is_left_out(upkeep: MaintenanceClient) -> None:
    path = write_workspace(upkeep, {**APP_REPO, "enabled": False}, LIBRARY_REPO, {"root": "nowhere"})

    result = upkeep.expect_result("search", query="first", workspacePath=path)

    assert {hit["repo"] for hit in result["code"]} == {"library"}
    assert upkeep.warnings == ["repository_skipped"]


def test_a_refresh_makes_the_indexes_that_are_missing(upkeep: MaintenanceClient) -> None:
    shutil.rmtree(upkeep.repository.cache)
    path = write_workspace(upkeep, LIBRARY_REPO)
    upkeep.expect_error("search", ErrorCode.NO_INDEX, query="first", workspacePath=path)

    result = upkeep.expect_result("search", query="first", workspacePath=path, refresh=True)

    assert result["code"][0]["name"] == "first_of_all"


def test_a_workspace_that_is_fenced_names_nothing_outside(upkeep: MaintenanceClient) -> None:
    inner = write_workspace(upkeep, {"root": "."}, folder=upkeep.repository.root)
    fenced = {"query": "first", "repoPath": str(upkeep.repository.root)}

    result = upkeep.expect_result("search", workspacePath="both.jsonc", **fenced)
    outer = write_workspace(upkeep, APP_REPO)
    upkeep.expect_error("search", ErrorCode.FORBIDDEN, workspacePath=outer, **fenced)
    write_workspace(upkeep, {"root": "../other/project"}, folder=upkeep.repository.root)
    upkeep.expect_error("search", ErrorCode.FORBIDDEN, workspacePath=inner, **fenced)
    upkeep.expect_error(
        "workspace_status",
        ErrorCode.FORBIDDEN,
        workspacePath=inner,
        repoPath=str(upkeep.repository.root),
    )
    upkeep.expect_error("search", ErrorCode.NOT_FOUND, query="x", workspacePath="none.jsonc")

    assert result["code"][0]["repo"] == "project"


def test_a_path_from_the_root_of_the_machine_is_searched_where_it_is(upkeep: MaintenanceClient) -> None:
    path = write_workspace(upkeep, APP_REPO, LIBRARY_REPO)
    there = upkeep.repository.folder / "other/project/lib"

    result = upkeep.expect_result("search", query="first", path=str(there), workspacePath=path)
    upkeep.expect_error("search", ErrorCode.INVALID_REQUEST, query="x", path="/elsewhere", workspacePath=path)

    assert [(hit["repo"], hit["file"]) for hit in result["code"]] == [("library", "lib/core.py")]


def test_a_phrase_that_one_repository_has_is_not_loosened_in_the_other(upkeep: MaintenanceClient) -> None:
    path = write_workspace(upkeep, APP_REPO, LIBRARY_REPO)

    one = upkeep.expect_result("search", query='"what comes first"', workspacePath=path)
    none = upkeep.expect_result("search", query='"first comes what"', workspacePath=path)

    assert [hit["repo"] for hit in one["prose"]] == ["library"]
    assert not one["code"]
    assert "notes" not in one["stats"]
    assert [note["code"] for note in none["stats"]["notes"]] == ["phrase_not_found"]
    assert none["code"]
