"""`config_status` and `report_artifacts`: what counts, what is there, and what it costs."""

import shutil
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store import cache
from cleats.toolsets.code.upkeep.configuration import MASK
from tests.index_world import World
from tests.requirements import requirement
from tests.upkeep_world import Upkeep, made


@pytest.fixture
def upkeep(tmp_path: Path) -> Upkeep:
    return made(tmp_path)


def codes(answers: list[dict[str, str]]) -> set[str]:
    return {each["code"] for each in answers}


@requirement("b:tools:required:config_status")
def test_the_settings_that_count_are_shown_and_where_things_are(upkeep: Upkeep) -> None:
    bare = upkeep.result("config_status")
    generation = upkeep.world.build(sqlite=True).generation
    full = upkeep.result("config_status")

    assert bare["repoId"] == Repository(upkeep.world.root).id
    assert bare["config"]["settings"]["index_lint"] == "off"
    assert bare["config"]["cacheRoot"] == str(upkeep.world.cache)
    assert not bare["cache"]["cacheRootExists"]
    assert bare["cache"]["cacheRootWritable"]
    assert bare["cache"]["index"] == "none"
    assert "index_missing" in codes(bare["warnings"])
    assert full["cache"]["index"] == "usable"
    assert generation in full["config"]["sqlite"]["path"]
    assert full["cache"]["modelAvailable"]
    assert "index_missing" not in codes(full["warnings"])


@requirement("b:tools:required:config_status")
def test_secrets_are_masked(upkeep: Upkeep) -> None:
    upkeep.more = {
        "http_token": "hunter2",
        "backend_url": "https://ann:hunter2@example.org/x",
    }

    answer = upkeep.result("config_status")

    assert "hunter2" not in str(answer)
    shown = answer["config"]["settings"]
    assert shown["http_token"] == MASK
    assert shown["backend_url"] == f"https://{MASK}@example.org/x"


def test_what_does_not_work_out_is_a_warning(
    upkeep: Upkeep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = World(tmp_path / "elsewhere")
    elsewhere.write(".cleats.toml", "index_lint = 'on'\n")
    (tmp_path / "file").write_text("")
    upkeep.more = {"cache_dir": tmp_path / "file" / "cache"}
    monkeypatch.setattr("cleats.toolsets.code.store.schema.SCHEMA", 99)

    answer = upkeep.result("config_status", repoPath=str(elsewhere.root))

    assert codes(answer["warnings"]) >= {"cache_not_writable", "repository_settings_unread"}
    assert answer["warningCount"] == len(answer["warnings"])


def test_an_index_of_another_version_is_outdated(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep.world.build()
    monkeypatch.setattr("cleats.toolsets.code.store.schema.SCHEMA", 99)

    settings = upkeep.result("config_status")
    report = upkeep.result("report_artifacts")

    assert settings["cache"]["index"] == "outdated"
    assert "index_outdated" in codes(settings["warnings"])
    assert "index_outdated" in codes(report["health"]["issues"])


@requirement("b:tools:required:report_artifacts")
def test_a_report_counts_every_byte_of_an_index_once(upkeep: Upkeep) -> None:
    upkeep.world.build(sqlite=True)

    report = upkeep.result("report_artifacts")

    repo, overall = report["repo"], report["overall"]
    folder = upkeep.world.shelf.folder
    assert repo["totalBytes"] == cache.used(folder)
    parts = sum(repo["artifacts"].values())
    assert 0 <= repo["totalBytes"] - parts < 500  # the pointer and its like
    assert repo["artifacts"]["catalogue"] > repo["artifacts"]["words"] > 0
    assert repo["sqlite"]["bytes"] == repo["artifacts"]["sqlite"] > 0
    assert report["health"] == {"issues": [], "hints": []}
    assert overall["indexBytes"] == overall["totalBytes"] == repo["totalBytes"]
    [entry] = report["allRepos"]
    assert (entry["root"], entry["rootExists"]) == (str(upkeep.world.root), True)


@requirement("b:tools:required:report_artifacts")
def test_a_report_says_what_is_wrong_and_what_to_do(upkeep: Upkeep, tmp_path: Path) -> None:
    gone = World(tmp_path / "gone", cache_name="../cache")
    gone.write("a.py", "x = 1\n")
    gone.build()
    shutil.rmtree(gone.root)
    missing = upkeep.result("report_artifacts")
    upkeep.world.build(sqlite=True)
    upkeep.world.write("app/core.py", "y = 1\n")
    with upkeep.world.lease():
        upkeep.world.build()
    upkeep.world.write("app/core.py", "z = 1\n")
    lease = upkeep.world.lease()
    (lease.folder / "fts.db").unlink()
    lease.close()
    shutil.rmtree(next((lease.folder / "shards").iterdir()))

    report = upkeep.result("report_artifacts")

    assert codes(missing["health"]["issues"]) == {"index_missing", "orphans"}
    assert codes(report["health"]["issues"]) == {
        "index_damaged",
        "index_stale",
        "leftovers",
        "orphans",
    }
    assert "Call cache_gc, or run `cleats cache gc`." in report["health"]["hints"]
    assert report["repo"]["artifacts"]["leftovers"] > 0
    assert [each["rootExists"] for each in report["allRepos"]] == [True, False]


@pytest.mark.parametrize("part", ["words", "shards"])
def test_a_report_says_which_part_is_missing(upkeep: Upkeep, part: str) -> None:
    upkeep.world.build()
    with upkeep.world.lease() as lease:
        shutil.rmtree(lease.folder / part)

    report = upkeep.result("report_artifacts")

    assert codes(report["health"]["issues"]) == {"index_damaged"}


def test_a_path_that_is_not_there_is_refused(upkeep: Upkeep) -> None:
    for tool in ("config_status", "report_artifacts", "clean_artifacts", "show_file"):
        given = {"path": "README.md"} if tool == "show_file" else {}

        upkeep.error(tool, ErrorCode.INVALID_REQUEST, repoPath="nowhere", **given)
