"""`workspace_status`, `bootstrap` and what `check_status` reports about the repository."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code import workspace
from cleats.toolsets.code.index import portable
from cleats.toolsets.code.maintenance import status
from cleats.toolsets.code.repository import Repository
from tests.support.maintenance import MaintenanceClient, create_maintenance_client
from tests.support.requirements import requirement
from tests.support.shell import LAW_SETTINGS


@pytest.fixture
def upkeep(tmp_path: Path) -> MaintenanceClient:
    return create_maintenance_client(tmp_path)


def write_manifest(upkeep: MaintenanceClient, content: Any) -> str:
    path = upkeep.repository.folder / "all.workspace.jsonc"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return str(path)


# workspace_status


@requirement("a:tools:workspace_status")
def test_a_workspace_says_what_can_be_searched_in_each_repository(upkeep: MaintenanceClient) -> None:
    commit = upkeep.repository.run_git("init", "-q", "-b", "main") or upkeep.repository.commit()
    generation = upkeep.repository.build_index().generation
    path = write_manifest(
        upkeep,
        """{
          // comments, and commas at the end
          "schemaVersion": 1,
          "name": "Both", /* of them */
          "defaults": {"tags": ["team"], "priority": 1,},
          "repos": [
            {"root": "nowhere", "enabled": false, "priority": 0},
            {"root": "project", "alias": "app"},
          ],
        }""",
    )

    status = upkeep.expect_result("workspace_status", workspacePath=path)

    app, nowhere = status["repos"]
    assert (status["name"], status["workspacePath"], status["ready"]) == ("Both", path, True)
    assert app["repoId"] == Repository(upkeep.repository.root).id
    assert (app["alias"], app["exists"], app["enabled"]) == ("app", True, True)
    assert (app["priority"], app["tags"]) == (1, ["team"])
    assert app["modes"]["code"]["available"]
    assert app["modes"]["code"]["chunks"] == 4
    assert app["modes"]["records"] == {"available": True, "chunks": 0}
    assert (app["signature"], app["commit"]) == (generation, commit)
    assert (nowhere["exists"], nowhere["enabled"], nowhere["signature"]) == (False, False, None)
    assert not nowhere["modes"]["code"]["available"]


def test_the_hashes_change_with_what_is_said_and_not_with_how(upkeep: MaintenanceClient) -> None:
    manifest = {"schemaVersion": 1, "repos": [{"root": "project", "alias": "a"}]}

    def read_hashes(content: Any) -> tuple[str, str]:
        status = upkeep.expect_result("workspace_status", workspacePath=write_manifest(upkeep, content))
        return status["manifestHash"], status["repoSetId"]

    plain = read_hashes(manifest)
    dressed = read_hashes('{"repos": [{"alias": "a", "root": "project"}], // x\n "schemaVersion": 1}')
    renamed = read_hashes({**manifest, "name": "other"})
    wider = read_hashes({**manifest, "repos": [*manifest["repos"], {"root": "."}]})  # type: ignore[misc]

    assert dressed == plain
    assert renamed[0] != plain[0]
    assert renamed[1] == plain[1]
    assert wider[1] != plain[1]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"schemaVersion": NaN}', "not JSON"),
        ('{"schemaVersion": 1, "schemaVersion": 1, "repos": []}', "twice"),
        ({"schemaVersion": 2, "repos": []}, "/schemaVersion"),
        ({"schemaVersion": 1}, "repos"),
        ({"schemaVersion": 1, "repos": [], "extra": 1}, "extra"),
        ({"schemaVersion": 1, "repos": [{"root": "a", "colour": "red"}]}, "colour"),
        ({"schemaVersion": 1, "repos": [{"root": "a\0b"}]}, "is not a valid path"),
        ({"schemaVersion": 1, "repos": [{"root": "a"}, {"root": "./a", "alias": "b"}]}, "twice"),
        ({"schemaVersion": 1, "repos": [{"root": "a"}, {"root": "b/a"}]}, "alias 'a'"),
        ({"schemaVersion": 1, "repos": [], "cacheRoot": "elsewhere"}, "cache"),
    ],
)
def test_what_is_no_workspace_is_refused(upkeep: MaintenanceClient, content: Any, why: str) -> None:
    error = upkeep.expect_error(
        "workspace_status", ErrorCode.INVALID_REQUEST, workspacePath=write_manifest(upkeep, content)
    )

    assert why in error.message


def test_a_folder_below_the_root_of_a_repository_means_the_repository(upkeep: MaintenanceClient) -> None:
    upkeep.repository.run_git("init", "-q")
    upkeep.repository.build_index()
    one = {"schemaVersion": 1, "repos": [{"root": "project/app"}]}

    [repo] = upkeep.expect_result("workspace_status", workspacePath=write_manifest(upkeep, one))["repos"]
    two = {**one, "repos": [{"root": "project/app"}, {"root": "project"}]}
    upkeep.expect_error("workspace_status", ErrorCode.INVALID_REQUEST, workspacePath=write_manifest(upkeep, two))

    assert (repo["alias"], repo["root"]) == ("app", str(upkeep.repository.root))
    assert repo["signature"]


def test_a_file_that_is_not_there_or_no_file_is_the_callers_error(upkeep: MaintenanceClient) -> None:
    upkeep.expect_error("workspace_status", ErrorCode.NOT_FOUND, workspacePath="none.jsonc")
    for path in (str(upkeep.repository.root), "x\0y", ""):
        upkeep.expect_error("workspace_status", ErrorCode.INVALID_REQUEST, workspacePath=path)
    upkeep.expect_error("workspace_status", ErrorCode.INVALID_REQUEST)


def test_the_cache_of_this_server_may_be_named(upkeep: MaintenanceClient) -> None:
    manifest = {"schemaVersion": 1, "repos": [], "cacheRoot": "cache"}

    assert upkeep.expect_result("workspace_status", workspacePath=write_manifest(upkeep, manifest))["ready"]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@LAW_SETTINGS
@given(JSON_VALUES, st.sampled_from(["", "// , ]\n", "/* } \n */", "\n\t "]))
def test_json_is_json_and_comments_and_last_commas_say_nothing(value: Any, noise: str) -> None:
    plain = json.dumps(value, indent=1)

    dressed = plain.replace("\n", noise + "\n") + noise
    for end in ("]", "}"):
        dressed = dressed.replace("\n" + end, f",{noise}\n{end}") if "," in plain else dressed

    assert workspace.parse_jsonc(plain) == value
    if '"' not in plain:  # a text may hold what looks like an end
        assert workspace.parse_jsonc(dressed) == value


# bootstrap


@requirement("b:tools:required:bootstrap")
def test_every_step_says_what_became_of_it(upkeep: MaintenanceClient) -> None:
    upkeep.repository.write_file("package.json", '{"scripts": {"install": "touch ran"}}')

    result = upkeep.expect_result("bootstrap", withSqlite=True)

    steps = result["steps"]
    assert list(steps) == ["install", "dictionaries", "tooling", "artifacts", "index", "sqlite"]
    assert all(step["ok"] for step in steps.values())
    assert steps["install"]["skipped"]
    assert "Packages are never installed" in steps["install"]["reason"]
    assert steps["tooling"]["found"]["mcp"] == {"sdk": True, "legacy": True}
    assert (steps["index"]["files"], steps["index"]["published"]) == (3, True)
    assert not steps["sqlite"]["skipped"]
    assert upkeep.repository.read_meta()["sqlite"]
    assert not (upkeep.repository.root / "ran").exists()
    assert upkeep.phases


@requirement("b:tools:required:bootstrap")
def test_steps_can_be_skipped(upkeep: MaintenanceClient) -> None:
    skips = ("skipInstall", "skipDicts", "skipIndex", "skipArtifacts", "skipTooling")

    result = upkeep.expect_result("bootstrap", **dict.fromkeys(skips, True))

    assert all(step["skipped"] and step["reason"] for step in result["steps"].values())
    assert upkeep.repository.generation_store.read_current_name() is None


@pytest.mark.parametrize(
    ("skip", "step"),
    [("skipInstall", "install"), ("skipDicts", "dictionaries"), ("skipTooling", "tooling")],
)
def test_a_step_that_is_skipped_because_of_an_argument_says_so(upkeep: MaintenanceClient, skip: str, step: str) -> None:
    unasked = upkeep.expect_result("bootstrap", skipIndex=True)["steps"][step]

    skipped = upkeep.expect_result("bootstrap", skipIndex=True, **{skip: True})["steps"][step]

    assert skipped != unasked
    assert skipped["reason"] == "Skipped on request."


def test_a_bootstrap_checks_the_dictionaries_and_names_the_package_manifests(upkeep: MaintenanceClient) -> None:
    upkeep.repository.write_file("requirements.txt", "flask\n")
    upkeep.repository.write_file("words.txt", "eins\n")
    upkeep.expect_result("download_dictionaries", url="de=words.txt")

    intact = upkeep.expect_result("bootstrap", skipIndex=True)["steps"]
    (upkeep.repository.cache / "dictionaries" / "de.txt").write_text("zwei\n")
    damaged = upkeep.expect_result("bootstrap", skipIndex=True)["steps"]["dictionaries"]
    (upkeep.repository.cache / "dictionaries" / "dictionaries.json").write_text("{")
    unreadable = upkeep.expect_result("bootstrap", skipIndex=True)["steps"]["dictionaries"]

    assert intact["install"]["manifests"] == ["requirements.txt"]
    assert intact["dictionaries"] == {"skipped": False, "ok": True, "lists": {"en": True, "de": True}}
    assert (damaged["ok"], damaged["lists"]) == (False, {"en": True, "de": False})
    assert not unreadable["ok"]
    assert "dictionaries.json cannot be read" in unreadable["reason"]


def test_an_index_from_elsewhere_is_taken_in_unless_it_is_not_wanted(upkeep: MaintenanceClient) -> None:
    upkeep.repository.build_index()
    upkeep.repository.write_file(".gitignore", "/ci-artifacts/\n")
    with upkeep.repository.lease_current() as lease:
        portable.export_generation(lease, upkeep.repository.root / "ci-artifacts")
    upkeep.expect_result("clean_artifacts")

    steps_without = upkeep.expect_result("bootstrap", skipTooling=True, skipArtifacts=True)["steps"]
    upkeep.expect_result("clean_artifacts")
    steps_with = upkeep.expect_result("bootstrap", skipTooling=True)["steps"]
    (upkeep.repository.root / "ci-artifacts" / "catalogue.db").write_text("bad")
    upkeep.expect_error("bootstrap", ErrorCode.DOWNLOAD_VERIFY_FAILED)

    assert steps_without["artifacts"]["skipped"]
    assert steps_without["artifacts"]["reason"] == "Skipped on request."
    assert steps_with["artifacts"]["restored"]
    assert steps_without["index"]["files"] == steps_with["index"]["files"] == 3


def test_an_unknown_repository_or_step_is_refused(upkeep: MaintenanceClient) -> None:
    upkeep.expect_error("bootstrap", ErrorCode.INVALID_REQUEST, repoPath="nowhere")
    upkeep.expect_error("bootstrap", ErrorCode.INVALID_REQUEST, skipAll=True)


# check_status


@requirement("a:tools:check_status")
def test_check_status_says_how_the_repository_around_it_stands(
    upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "FRESHNESS_TIMEOUT_SECONDS", 60.0)
    bare = upkeep.expect_result("check_status")["repository"]
    generation = upkeep.repository.build_index().generation
    fresh = upkeep.expect_result("check_status")["repository"]
    upkeep.repository.write_file("app/more.py", "x = 1\n")
    stale = upkeep.expect_result("check_status")["repository"]

    assert bare == {
        "repoPath": str(upkeep.repository.root),
        "repoId": Repository(upkeep.repository.root).id,
        "generation": None,
    }
    assert (fresh["generation"], fresh["stale"]) == (generation, False)
    assert (stale["stale"], stale["added"]) == (True, 1)


def test_check_status_works_where_the_folder_is_gone(upkeep: MaintenanceClient, tmp_path: Path) -> None:
    upkeep.extra_settings["project_dir"] = tmp_path / "gone"

    assert "repository" not in upkeep.expect_result("check_status")
