"""`workspace_status`, `bootstrap` and what `check_status` says of the repository."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code import jsonc
from cleats.toolsets.code.indexing import artifacts
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.upkeep import standing
from tests.requirements import requirement
from tests.shell import LAW
from tests.upkeep_world import Upkeep, made


@pytest.fixture
def upkeep(tmp_path: Path) -> Upkeep:
    return made(tmp_path)


def written(upkeep: Upkeep, content: Any) -> str:
    path = upkeep.world.folder / "all.workspace.jsonc"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return str(path)


# workspace_status


@requirement("a:tools:workspace_status")
def test_a_workspace_says_what_can_be_searched_in_each_repository(upkeep: Upkeep) -> None:
    commit = upkeep.world.git("init", "-q", "-b", "main") or upkeep.world.commit()
    generation = upkeep.world.build().generation
    path = written(
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

    status = upkeep.result("workspace_status", workspacePath=path)

    app, nowhere = status["repos"]
    assert (status["name"], status["workspacePath"], status["ready"]) == ("Both", path, True)
    assert app["repoId"] == Repository(upkeep.world.root).id
    assert (app["alias"], app["exists"], app["enabled"]) == ("app", True, True)
    assert (app["priority"], app["tags"]) == (1, ["team"])
    assert app["modes"]["code"]["available"]
    assert app["modes"]["code"]["chunks"] == 4
    assert app["modes"]["records"] == {"available": True, "chunks": 0}
    assert (app["signature"], app["commit"]) == (generation, commit)
    assert (nowhere["exists"], nowhere["enabled"], nowhere["signature"]) == (False, False, None)
    assert not nowhere["modes"]["code"]["available"]


def test_the_hashes_change_with_what_is_said_and_not_with_how(upkeep: Upkeep) -> None:
    said = {"schemaVersion": 1, "repos": [{"root": "project", "alias": "a"}]}

    def told(content: Any) -> tuple[str, str]:
        status = upkeep.result("workspace_status", workspacePath=written(upkeep, content))
        return status["manifestHash"], status["repoSetId"]

    plain = told(said)
    dressed = told('{"repos": [{"alias": "a", "root": "project"}], // x\n "schemaVersion": 1}')
    renamed = told({**said, "name": "other"})
    wider = told({**said, "repos": [*said["repos"], {"root": "."}]})  # type: ignore[misc]

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
        ({"schemaVersion": 1, "repos": [{"root": "a\0b"}]}, "no usable path"),
        ({"schemaVersion": 1, "repos": [{"root": "a"}, {"root": "./a", "alias": "b"}]}, "twice"),
        ({"schemaVersion": 1, "repos": [{"root": "a"}, {"root": "b/a"}]}, "alias 'a'"),
        ({"schemaVersion": 1, "repos": [], "cacheRoot": "elsewhere"}, "cache"),
    ],
)
def test_what_is_no_workspace_is_refused(upkeep: Upkeep, content: Any, why: str) -> None:
    error = upkeep.error(
        "workspace_status", ErrorCode.INVALID_REQUEST, workspacePath=written(upkeep, content)
    )

    assert why in error.message


def test_a_folder_below_the_root_of_a_repository_means_the_repository(upkeep: Upkeep) -> None:
    upkeep.world.git("init", "-q")
    upkeep.world.build()
    one = {"schemaVersion": 1, "repos": [{"root": "project/app"}]}

    [repo] = upkeep.result("workspace_status", workspacePath=written(upkeep, one))["repos"]
    two = {**one, "repos": [{"root": "project/app"}, {"root": "project"}]}
    upkeep.error("workspace_status", ErrorCode.INVALID_REQUEST, workspacePath=written(upkeep, two))

    assert (repo["alias"], repo["root"]) == ("app", str(upkeep.world.root))
    assert repo["signature"]


def test_a_file_that_is_not_there_or_no_file_is_the_callers_error(upkeep: Upkeep) -> None:
    upkeep.error("workspace_status", ErrorCode.NOT_FOUND, workspacePath="none.jsonc")
    for path in (str(upkeep.world.root), "x\0y", ""):
        upkeep.error("workspace_status", ErrorCode.INVALID_REQUEST, workspacePath=path)
    upkeep.error("workspace_status", ErrorCode.INVALID_REQUEST)


def test_the_cache_of_this_server_may_be_named(upkeep: Upkeep) -> None:
    said = {"schemaVersion": 1, "repos": [], "cacheRoot": "cache"}

    assert upkeep.result("workspace_status", workspacePath=written(upkeep, said))["ready"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@LAW
@given(JSON, st.sampled_from(["", "// , ]\n", "/* } \n */", "\n\t "]))
def test_json_is_json_and_comments_and_last_commas_say_nothing(value: Any, noise: str) -> None:
    plain = json.dumps(value, indent=1)

    dressed = plain.replace("\n", noise + "\n") + noise
    for end in ("]", "}"):
        dressed = dressed.replace("\n" + end, f",{noise}\n{end}") if "," in plain else dressed

    assert jsonc.parse(plain) == value
    if '"' not in plain:  # a text may hold what looks like an end
        assert jsonc.parse(dressed) == value


# bootstrap


@requirement("b:tools:required:bootstrap")
def test_every_step_says_what_became_of_it(upkeep: Upkeep) -> None:
    upkeep.world.write("package.json", '{"scripts": {"install": "touch ran"}}')

    done = upkeep.result("bootstrap", withSqlite=True)

    steps = done["steps"]
    assert list(steps) == ["install", "dictionaries", "tooling", "artifacts", "index", "sqlite"]
    assert all(step["ok"] for step in steps.values())
    assert steps["install"]["skipped"]
    assert "Nothing is installed" in steps["install"]["reason"]
    assert steps["tooling"]["found"]["mcp"] == {"sdk": True}
    assert (steps["index"]["files"], steps["index"]["published"]) == (3, True)
    assert not steps["sqlite"]["skipped"]
    assert upkeep.world.meta()["sqlite"]
    assert not (upkeep.world.root / "ran").exists()
    assert upkeep.phases


@requirement("b:tools:required:bootstrap")
def test_steps_can_be_skipped(upkeep: Upkeep) -> None:
    skips = ("skipInstall", "skipDicts", "skipIndex", "skipArtifacts", "skipTooling")

    done = upkeep.result("bootstrap", **dict.fromkeys(skips, True))

    assert all(step["skipped"] and step["reason"] for step in done["steps"].values())
    assert upkeep.world.shelf.name() is None


@requirement("a:arguments:none-ignored")
@pytest.mark.parametrize(
    ("skip", "step"),
    [("skipInstall", "install"), ("skipDicts", "dictionaries"), ("skipTooling", "tooling")],
)
def test_a_step_that_is_skipped_because_of_an_argument_says_so(
    upkeep: Upkeep, skip: str, step: str
) -> None:
    unasked = upkeep.result("bootstrap", skipIndex=True)["steps"][step]

    asked = upkeep.result("bootstrap", skipIndex=True, **{skip: True})["steps"][step]

    assert asked != unasked
    assert asked["reason"] == "The caller asked to skip it."


@requirement("a:arguments:none-ignored")
def test_an_index_from_elsewhere_is_taken_in_unless_it_is_not_wanted(upkeep: Upkeep) -> None:
    upkeep.world.build()
    upkeep.world.write(".gitignore", "/ci-artifacts/\n")
    with upkeep.world.lease() as lease:
        artifacts.export(lease, upkeep.world.root / "ci-artifacts")
    upkeep.result("clean_artifacts")

    left = upkeep.result("bootstrap", skipTooling=True, skipArtifacts=True)["steps"]
    upkeep.result("clean_artifacts")
    taken = upkeep.result("bootstrap", skipTooling=True)["steps"]
    (upkeep.world.root / "ci-artifacts" / "catalogue.db").write_text("bad")
    upkeep.error("bootstrap", ErrorCode.DOWNLOAD_VERIFY_FAILED)

    assert left["artifacts"]["skipped"]
    assert left["artifacts"]["reason"] == "The caller asked to skip it."
    assert taken["artifacts"]["restored"]
    assert left["index"]["files"] == taken["index"]["files"] == 3


def test_an_unknown_repository_or_step_is_refused(upkeep: Upkeep) -> None:
    upkeep.error("bootstrap", ErrorCode.INVALID_REQUEST, repoPath="nowhere")
    upkeep.error("bootstrap", ErrorCode.INVALID_REQUEST, skipAll=True)


# check_status


@requirement("a:tools:check_status")
def test_check_status_says_how_the_repository_around_it_stands(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "PATIENCE", 60.0)
    bare = upkeep.result("check_status")["repository"]
    generation = upkeep.world.build().generation
    fresh = upkeep.result("check_status")["repository"]
    upkeep.world.write("app/more.py", "x = 1\n")
    stale = upkeep.result("check_status")["repository"]

    assert bare == {
        "repoPath": str(upkeep.world.root),
        "repoId": Repository(upkeep.world.root).id,
        "generation": None,
    }
    assert (fresh["generation"], fresh["stale"]) == (generation, False)
    assert (stale["stale"], stale["added"]) == (True, 1)


def test_check_status_works_where_the_folder_is_gone(upkeep: Upkeep, tmp_path: Path) -> None:
    upkeep.more["project_dir"] = tmp_path / "gone"

    assert "repository" not in upkeep.result("check_status")
