"""No argument of a code tool is taken and ignored.

Most have tests beside their tool; here are those that say which repository is meant, for every
tool at once, and those whose only effect is a word in the answer or a build that is not made.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from cleats import app
from cleats.contract.errors import ErrorCode
from cleats.contract.outcome import Failed
from cleats.settings import Settings
from tests.requirements import requirement
from tests.triage_world import Shop
from tests.upkeep_world import Upkeep, made

NEEDED: dict[str, dict[str, Any]] = {
    "search": {"query": "x"},
    "show_file": {"path": "README.md"},
    "workspace_status": {"workspacePath": "all.jsonc"},
    "triage_ingest": {"source": "sarif", "inputPath": "x.sarif"},
    "triage_decision": {"finding": "x", "status": "fix"},
    "triage_context_pack": {"recordId": "x"},
}
"""What a call cannot do without."""

SETTLED = ["check_status"]
"""Tools that are about no repository but the server's own."""


@pytest.fixture
def upkeep(tmp_path: Path) -> Upkeep:
    return made(tmp_path)


@requirement("a:arguments:none-ignored", "a:tests:arguments")
def test_every_tool_is_about_the_repository_that_it_is_given(upkeep: Upkeep) -> None:
    names = [tool.name for tool in app.catalogue(Settings(), ["code"]) if tool.name not in SETTLED]
    nowhere = str(upkeep.world.folder / "nowhere")

    calls = [(name, {**NEEDED.get(name, {}), "repoPath": nowhere}) for name in names]
    outcomes = dict(zip(names, upkeep.calls(*calls), strict=True))

    assert len(outcomes) == 19
    for name, outcome in outcomes.items():
        assert isinstance(outcome, Failed), name
        assert outcome.error.code is ErrorCode.INVALID_REQUEST, name
        assert "nowhere" in outcome.error.message, name


@requirement("a:arguments:none-ignored", "a:tests:arguments")
def test_a_build_makes_what_it_is_asked_to_make(upkeep: Upkeep) -> None:
    bare = upkeep.result("build_index", mode="code", stubEmbeddings=True, sqlite=True)
    whole = upkeep.result("build_index", mode="code", sqlite=False)

    assert (bare["vectors"], bare["sqlite"]) == (False, True)
    assert (whole["vectors"], whole["sqlite"]) == (True, False)
    assert (upkeep.world.meta()["vectors"], upkeep.world.meta()["sqlite"]) == (True, False)


@requirement("a:arguments:none-ignored", "a:tests:arguments")
def test_only_changes_are_read_when_only_they_count(tmp_path: Path) -> None:
    shop = Shop.at(tmp_path)
    finding = {"cve": "CVE-2022-0001", "packageName": "p", "severity": "high"}
    shop.build()

    made = [
        shop.call("bootstrap", incremental=only)["steps"]["index"]["published"]
        for only in (True, False)
    ]
    shop.ingest("generic", finding, buildIndex=True)
    made += [
        shop.ingest("generic", finding, buildIndex=True, incremental=only)["index"]["published"]
        for only in (True, False)
    ]

    assert made == [False, True, False, True]


@requirement("a:arguments:none-ignored", "a:tests:arguments")
def test_an_extension_is_kept_and_looked_for_where_and_as_it_is_said(upkeep: Upkeep) -> None:
    given = {"provider": "sqlite-vec", "platform": "windows", "arch": "arm64", "dir": "own"}
    names = {"column": "vector", "encoding": "json"}
    (upkeep.world.root / "vec0.dll").write_bytes(b"MZ and so on")

    brought = upkeep.result("download_extensions", url="vec0.dll", **given)
    found = upkeep.result("verify_extensions", **given, **names)

    assert Path(brought["output"]).is_relative_to(upkeep.world.root / "own")
    assert (brought["provider"], brought["platform"]) == ("sqlite-vec", "windows")
    assert found["path"] == brought["extensionPath"]
    assert found["exists"]
    assert found["config"].items() >= {**names, "provider": "sqlite-vec", "arch": "arm64"}.items()
    for tool in ("download_extensions", "verify_extensions"):
        upkeep.error(tool, ErrorCode.INVALID_REQUEST, provider="none")


@requirement("a:arguments:none-ignored", "a:tests:arguments")
def test_a_workspace_of_a_repository_is_a_file_of_it(upkeep: Upkeep) -> None:
    text = json.dumps({"schemaVersion": 1, "repos": []})
    inside, outside = upkeep.world.root / "all.jsonc", upkeep.world.folder / "all.jsonc"
    inside.write_text(text)
    outside.write_text(text)
    root = str(upkeep.world.root)

    found = upkeep.result("workspace_status", workspacePath="all.jsonc", repoPath=root)

    assert found["workspacePath"] == str(inside)
    assert upkeep.result("workspace_status", workspacePath=str(outside))["ready"]
    upkeep.error("workspace_status", ErrorCode.FORBIDDEN, workspacePath=str(outside), repoPath=root)
