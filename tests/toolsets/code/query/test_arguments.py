"""Every argument of a code tool has an effect.

Most have tests beside their tool. Here are those that select the repository, for every tool at
once, and those whose only effect is a word in the answer or a build that is not made.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from cleats import app
from cleats.contract.errors import ErrorCode
from cleats.contract.outcome import Failed
from cleats.settings import Settings
from tests.support.maintenance import MaintenanceClient, create_maintenance_client
from tests.support.triage import TriageShop

REQUIRED_ARGUMENTS: dict[str, dict[str, Any]] = {
    "search": {"query": "x"},
    "show_file": {"path": "README.md"},
    "workspace_status": {"workspacePath": "all.jsonc"},
    "triage_ingest": {"source": "sarif", "inputPath": "x.sarif"},
    "triage_decision": {"finding": "x", "status": "fix"},
    "triage_context_pack": {"recordId": "x"},
}
"""Arguments without which a call is invalid, by tool."""

SERVER_TOOLS = ["check_status"]
"""Tools that always use the server's own repository."""


@pytest.fixture
def upkeep(tmp_path: Path) -> MaintenanceClient:
    return create_maintenance_client(tmp_path)


def test_every_tool_is_about_the_repository_that_it_is_given(upkeep: MaintenanceClient) -> None:
    names = [tool.name for tool in app.build_registry(Settings(), ["code"]) if tool.name not in SERVER_TOOLS]
    nowhere = str(upkeep.repository.folder / "nowhere")

    calls = [(name, {**REQUIRED_ARGUMENTS.get(name, {}), "repoPath": nowhere}) for name in names]
    outcomes = dict(zip(names, upkeep.call_tools(*calls), strict=True))

    assert len(outcomes) == 19
    for name, outcome in outcomes.items():
        assert isinstance(outcome, Failed), name
        assert outcome.error.code is ErrorCode.INVALID_REQUEST, name
        assert "nowhere" in outcome.error.message, name


def test_a_build_makes_what_it_is_asked_to_make(upkeep: MaintenanceClient) -> None:
    bare = upkeep.expect_result("build_index", mode="code", stubEmbeddings=True, sqlite=True)
    full = upkeep.expect_result("build_index", mode="code", sqlite=False)

    assert (bare["vectors"], bare["sqlite"]) == (False, True)
    assert (full["vectors"], full["sqlite"]) == (True, False)
    assert (upkeep.repository.read_meta()["vectors"], upkeep.repository.read_meta()["sqlite"]) == (True, False)


@pytest.mark.parametrize(
    ("tool", "arguments", "argument", "switch"),
    [
        ("build_index", {"artifactsDir": "there"}, "artifactsDir", "useArtifacts"),
        ("triage_ingest", {"incremental": False}, "incremental", "buildIndex"),
        ("triage_ingest", {"stubEmbeddings": True}, "stubEmbeddings", "buildIndex"),
    ],
)
def test_an_argument_that_needs_another_is_refused_without_it(
    tool: str, arguments: dict[str, Any], argument: str, switch: str, upkeep: MaintenanceClient
) -> None:
    arguments = {**REQUIRED_ARGUMENTS.get(tool, {}), **arguments}

    error = upkeep.expect_error(tool, ErrorCode.INVALID_REQUEST, **arguments)

    assert error.message == f"{argument} has no effect without {switch}=true."
    assert [detail["instancePath"] for detail in error.details] == [f"/{argument}"]


def test_only_changes_are_read_when_only_they_count(tmp_path: Path) -> None:
    shop = TriageShop.create(tmp_path)
    finding = {"cve": "CVE-2022-0001", "packageName": "p", "severity": "high"}
    shop.build_index()

    published = [shop.call_tool("bootstrap", incremental=only)["steps"]["index"]["published"] for only in (True, False)]
    shop.ingest_report("generic", finding, buildIndex=True)
    published += [
        shop.ingest_report("generic", finding, buildIndex=True, incremental=only)["index"]["published"]
        for only in (True, False)
    ]

    assert published == [False, True, False, True]


def test_an_extension_is_kept_and_looked_for_where_and_as_it_is_said(upkeep: MaintenanceClient) -> None:
    arguments = {"provider": "sqlite-vec", "platform": "windows", "arch": "arm64", "dir": "own"}
    names = {"column": "vector", "encoding": "json"}
    (upkeep.repository.root / "vec0.dll").write_bytes(b"MZ and so on")

    download = upkeep.expect_result("download_extensions", url="vec0.dll", **arguments)
    verification = upkeep.expect_result("verify_extensions", **arguments, **names)

    assert Path(download["output"]).is_relative_to(upkeep.repository.root / "own")
    assert (download["provider"], download["platform"]) == ("sqlite-vec", "windows")
    assert verification["path"] == download["extensionPath"]
    assert verification["exists"]
    assert verification["config"].items() >= {**names, "provider": "sqlite-vec", "arch": "arm64"}.items()
    for tool in ("download_extensions", "verify_extensions"):
        upkeep.expect_error(tool, ErrorCode.INVALID_REQUEST, provider="none")


def test_a_workspace_of_a_repository_is_a_file_of_it(upkeep: MaintenanceClient) -> None:
    text = json.dumps({"schemaVersion": 1, "repos": []})
    inside, outside = upkeep.repository.root / "all.jsonc", upkeep.repository.folder / "all.jsonc"
    inside.write_text(text)
    outside.write_text(text)
    root = str(upkeep.repository.root)

    status = upkeep.expect_result("workspace_status", workspacePath="all.jsonc", repoPath=root)

    assert status["workspacePath"] == str(inside)
    assert upkeep.expect_result("workspace_status", workspacePath=str(outside))["ready"]
    upkeep.expect_error("workspace_status", ErrorCode.FORBIDDEN, workspacePath=str(outside), repoPath=root)
