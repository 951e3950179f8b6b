"""`search` in the repositories of a workspace: one answer, merged by score."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode
from tests.index_world import World
from tests.requirements import requirement
from tests.upkeep_world import Upkeep, made


@pytest.fixture
def upkeep(tmp_path: Path) -> Upkeep:
    upkeep = made(tmp_path)
    upkeep.world.build()
    library = World(tmp_path / "other", cache_name="../cache")
    library.write("lib/core.py", "def first_of_all(value):\n    return value\n")
    library.write("README.md", "# Library\n\nWhat comes first.\n")
    library.build()
    return upkeep


def workspace(upkeep: Upkeep, *repos: dict[str, Any], folder: Path | None = None) -> str:
    path = (folder or upkeep.world.folder) / "both.jsonc"
    path.write_text(json.dumps({"schemaVersion": 1, "repos": repos}))
    return str(path)


APP = {"root": "project", "alias": "app"}
LIBRARY = {"root": "other/project", "alias": "library"}


@requirement("a:tools:workspace_status")
def test_hits_of_all_repositories_are_merged_by_score(upkeep: Upkeep) -> None:
    path = workspace(upkeep, APP, LIBRARY)
    alone = {
        alias: upkeep.result("search", query="first", repoPath=str(upkeep.world.folder / root))
        for alias, root in (("app", "project"), ("library", "other/project"))
    }

    both = upkeep.result("search", query="first", workspacePath=path)

    for mode in ("code", "prose", "extractedProse"):
        expected = [
            {**hit, "repo": alias} for alias, answer in alone.items() for hit in answer[mode]
        ]
        expected.sort(key=lambda hit: -hit["score"])
        assert both[mode] == expected[: len(both[mode])]
    assert {hit["repo"] for hit in both["code"]} == {"app", "library"}
    assert both["stats"]["chunks"] == sum(each["stats"]["chunks"] for each in alone.values())
    assert [each["alias"] for each in both["stats"]["repos"]] == ["app", "library"]


def test_files_of_one_path_in_two_repositories_stay_apart(upkeep: Upkeep) -> None:
    path = workspace(upkeep, APP, LIBRARY)

    both = upkeep.result(
        "search", query="title library", mode="prose", output="full", workspacePath=path
    )

    groups = {(each["repo"], each["file"]) for each in both["bundles"]["groups"]}
    assert groups >= {("app", "README.md"), ("library", "README.md")}
    for group in both["bundles"]["groups"]:
        for hit in group["hits"]:
            assert both[hit["mode"]][hit["index"]]["repo"] == group["repo"]


def test_no_more_hits_come_than_are_asked_for(upkeep: Upkeep) -> None:
    path = workspace(upkeep, APP, LIBRARY)

    both = upkeep.result("search", query="first value", top=1, workspacePath=path)

    assert len(both["code"]) == 1


def test_what_is_switched_off_or_has_no_index_is_left_out(upkeep: Upkeep) -> None:
    path = workspace(upkeep, {**APP, "enabled": False}, LIBRARY, {"root": "nowhere"})

    found = upkeep.result("search", query="first", workspacePath=path)

    assert {hit["repo"] for hit in found["code"]} == {"library"}
    assert upkeep.warnings == ["repository_skipped"]


def test_a_refresh_makes_the_indexes_that_are_missing(upkeep: Upkeep) -> None:
    shutil.rmtree(upkeep.world.cache)
    path = workspace(upkeep, LIBRARY)
    upkeep.error("search", ErrorCode.NO_INDEX, query="first", workspacePath=path)

    found = upkeep.result("search", query="first", workspacePath=path, refresh=True)

    assert found["code"][0]["name"] == "first_of_all"


def test_a_workspace_that_is_fenced_names_nothing_outside(upkeep: Upkeep) -> None:
    inner = workspace(upkeep, {"root": "."}, folder=upkeep.world.root)
    fenced = {"query": "first", "repoPath": str(upkeep.world.root)}

    found = upkeep.result("search", workspacePath="both.jsonc", **fenced)
    outer = workspace(upkeep, APP)
    upkeep.error("search", ErrorCode.FORBIDDEN, workspacePath=outer, **fenced)
    workspace(upkeep, {"root": "../other/project"}, folder=upkeep.world.root)
    upkeep.error("search", ErrorCode.FORBIDDEN, workspacePath=inner, **fenced)
    upkeep.error(
        "workspace_status",
        ErrorCode.FORBIDDEN,
        workspacePath=inner,
        repoPath=str(upkeep.world.root),
    )
    upkeep.error("search", ErrorCode.NOT_FOUND, query="x", workspacePath="none.jsonc")

    assert found["code"][0]["repo"] == "project"


def test_a_path_from_the_root_of_the_machine_is_searched_where_it_is(upkeep: Upkeep) -> None:
    path = workspace(upkeep, APP, LIBRARY)
    there = upkeep.world.folder / "other/project/lib"

    found = upkeep.result("search", query="first", path=str(there), workspacePath=path)
    upkeep.error(
        "search", ErrorCode.INVALID_REQUEST, query="x", path="/elsewhere", workspacePath=path
    )

    assert [(hit["repo"], hit["file"]) for hit in found["code"]] == [("library", "lib/core.py")]


def test_a_phrase_that_one_repository_has_is_not_loosened_in_the_other(upkeep: Upkeep) -> None:
    path = workspace(upkeep, APP, LIBRARY)

    one = upkeep.result("search", query='"what comes first"', workspacePath=path)
    none = upkeep.result("search", query='"first comes what"', workspacePath=path)

    assert [hit["repo"] for hit in one["prose"]] == ["library"]
    assert not one["code"]
    assert "notes" not in one["stats"]
    assert [note["code"] for note in none["stats"]["notes"]] == ["phrase_not_found"]
    assert none["code"]
