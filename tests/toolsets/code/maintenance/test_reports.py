"""`config_status` and `report_artifacts`: the settings in force, the indexes and their cost."""

import shutil
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code.index import cache
from cleats.toolsets.code.maintenance.status import SECRET_MASK
from cleats.toolsets.code.repository import Repository
from tests.support.indexes import IndexedRepository
from tests.support.maintenance import MaintenanceClient, create_maintenance_client
from tests.support.requirements import requirement


@pytest.fixture
def upkeep(tmp_path: Path) -> MaintenanceClient:
    return create_maintenance_client(tmp_path)


def list_codes(answers: list[dict[str, str]]) -> set[str]:
    return {answer["code"] for answer in answers}


@requirement("b:tools:required:config_status")
def test_the_settings_that_count_are_shown_and_where_things_are(upkeep: MaintenanceClient) -> None:
    bare = upkeep.expect_result("config_status")
    generation = upkeep.repository.build_index(sqlite=True).generation
    full = upkeep.expect_result("config_status")

    assert bare["repoId"] == Repository(upkeep.repository.root).id
    assert bare["config"]["settings"]["index_lint"] == "off"
    assert bare["config"]["cacheRoot"] == str(upkeep.repository.cache)
    assert not bare["cache"]["cacheRootExists"]
    assert bare["cache"]["cacheRootWritable"]
    assert bare["cache"]["index"] == "none"
    assert "index_missing" in list_codes(bare["warnings"])
    assert full["cache"]["index"] == "usable"
    assert generation in full["config"]["sqlite"]["path"]
    assert full["cache"]["modelAvailable"]
    assert "index_missing" not in list_codes(full["warnings"])


@requirement("b:tools:required:config_status")
def test_secrets_are_masked(upkeep: MaintenanceClient) -> None:
    upkeep.extra_settings = {
        "http_token": "hunter2",
        "backend_url": "https://ann:hunter2@example.org/x",
    }

    answer = upkeep.expect_result("config_status")

    assert "hunter2" not in str(answer)
    settings = answer["config"]["settings"]
    assert settings["http_token"] == SECRET_MASK
    assert settings["backend_url"] == f"https://{SECRET_MASK}@example.org/x"


def test_what_does_not_work_out_is_a_warning(
    upkeep: MaintenanceClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = IndexedRepository(tmp_path / "elsewhere")
    elsewhere.write_file(".cleats.toml", "index_lint = 'on'\n")
    (tmp_path / "file").write_text("")
    upkeep.extra_settings = {"cache_dir": tmp_path / "file" / "cache"}
    monkeypatch.setattr("cleats.toolsets.code.index.catalogue_schema.CATALOGUE_SCHEMA_VERSION", 99)

    answer = upkeep.expect_result("config_status", repoPath=str(elsewhere.root))

    assert list_codes(answer["warnings"]) >= {"cache_not_writable", "repository_settings_unread"}
    assert answer["warningCount"] == len(answer["warnings"])


def test_an_index_of_another_version_is_outdated(upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep.repository.build_index()
    monkeypatch.setattr("cleats.toolsets.code.index.catalogue_schema.CATALOGUE_SCHEMA_VERSION", 99)

    settings = upkeep.expect_result("config_status")
    report = upkeep.expect_result("report_artifacts")

    assert settings["cache"]["index"] == "outdated"
    assert "index_outdated" in list_codes(settings["warnings"])
    assert "index_outdated" in list_codes(report["health"]["issues"])


@requirement("b:tools:required:report_artifacts")
def test_a_report_counts_every_byte_of_an_index_once(upkeep: MaintenanceClient) -> None:
    upkeep.repository.build_index(sqlite=True)

    report = upkeep.expect_result("report_artifacts")

    repo, overall = report["repo"], report["overall"]
    folder = upkeep.repository.generation_store.folder
    assert repo["totalBytes"] == cache.measure_disk_usage(folder)
    parts = sum(repo["artifacts"].values())
    assert 0 <= repo["totalBytes"] - parts < 500  # the pointer and its like
    assert repo["artifacts"]["catalogue"] > repo["artifacts"]["words"] > 0
    assert repo["sqlite"]["bytes"] == repo["artifacts"]["sqlite"] > 0
    assert report["health"] == {"issues": [], "hints": []}
    assert overall["indexBytes"] == overall["totalBytes"] == repo["totalBytes"]
    [entry] = report["allRepos"]
    assert (entry["root"], entry["rootExists"]) == (str(upkeep.repository.root), True)


@requirement("b:tools:required:report_artifacts")
def test_a_report_says_what_is_wrong_and_what_to_do(upkeep: MaintenanceClient, tmp_path: Path) -> None:
    gone = IndexedRepository(tmp_path / "gone", cache_name="../cache")
    gone.write_file("a.py", "x = 1\n")
    gone.build_index()
    shutil.rmtree(gone.root)
    missing = upkeep.expect_result("report_artifacts")
    upkeep.repository.build_index(sqlite=True)
    upkeep.repository.write_file("app/core.py", "y = 1\n")
    with upkeep.repository.lease_current():
        upkeep.repository.build_index()
    upkeep.repository.write_file("app/core.py", "z = 1\n")
    lease = upkeep.repository.lease_current()
    (lease.folder / "fts.db").unlink()
    lease.close()
    shutil.rmtree(next((lease.folder / "shards").iterdir()))

    report = upkeep.expect_result("report_artifacts")

    assert list_codes(missing["health"]["issues"]) == {"index_missing", "orphans"}
    assert list_codes(report["health"]["issues"]) == {
        "index_damaged",
        "index_stale",
        "leftovers",
        "orphans",
    }
    assert "Call cache_gc, or run `cleats cache gc`." in report["health"]["hints"]
    assert report["repo"]["artifacts"]["leftovers"] > 0
    assert [repo["rootExists"] for repo in report["allRepos"]] == [True, False]


@pytest.mark.parametrize("part", ["words", "shards"])
def test_a_report_says_which_part_is_missing(upkeep: MaintenanceClient, part: str) -> None:
    upkeep.repository.build_index()
    with upkeep.repository.lease_current() as lease:
        shutil.rmtree(lease.folder / part)

    report = upkeep.expect_result("report_artifacts")

    assert list_codes(report["health"]["issues"]) == {"index_damaged"}


def test_a_path_that_is_not_there_is_refused(upkeep: MaintenanceClient) -> None:
    for tool in ("config_status", "report_artifacts", "clean_artifacts", "show_file"):
        arguments = {"path": "README.md"} if tool == "show_file" else {}

        upkeep.expect_error(tool, ErrorCode.INVALID_REQUEST, repoPath="nowhere", **arguments)
