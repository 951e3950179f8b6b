"""Tests of the paths that network callers may name to tools: repositories, files, workspaces."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.http_client import CLEATS_COMMAND, WebServer, parse_events, run_web_server
from tests.support.requirements import requirement

EMPTY_SARIF = {"version": "2.1.0", "runs": []}


@dataclass
class FencedSite:
    """A server with a repository, an allowed root next to it, and paths outside both."""

    web: WebServer
    home: Path

    def request_status(self, tool: str, **arguments: Any) -> int:
        """Return the HTTP status of a call, after checking the answer as a stream."""
        plain = self.web.call_tool(tool, **arguments)
        stream = self.web.post(f"/tools/{tool}/stream", arguments)
        if plain.status == 403:
            refusal = stream.json if stream.status == 403 else parse_events(stream.body)[-2][1]
            assert plain.error["code"] == refusal["error"]["code"] == "FORBIDDEN"
        return plain.status

    def write_workspace(self, folder: str, *roots: str) -> str:
        repos = [{"root": str(self.home / root), "alias": root} for root in roots]
        path = self.home / folder / "all.jsonc"
        path.write_text(json.dumps({"schemaVersion": 1, "repos": repos}))
        return str(path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FencedSite]:
    home = tmp_path_factory.mktemp("site")
    for folder in ("repo/sub", "roots/one", "roots/two", "outside", "mono/.git", "mono/allowed/a"):
        (home / folder).mkdir(parents=True)
    for folder in ("repo", "repo/sub", "roots/one", "outside", "mono"):
        (home / folder / "found.sarif").write_text(json.dumps(EMPTY_SARIF))
    (home / "repo" / "way-out").symlink_to(home / "outside")
    roots = ",".join(str(home / root) for root in ("roots", "mono/allowed"))
    command = (*CLEATS_COMMAND, "code", "explore", "--repo", str(home / "repo"))
    with run_web_server(*command, home=home, CLEATS_HTTP_ROOTS=roots, CLEATS_TELEMETRY="off") as web:
        yield FencedSite(web, home)


@requirement("b:http:403-repo")
def test_a_file_of_findings_must_be_inside_the_fence(site: FencedSite) -> None:
    expected_statuses = {
        "found.sarif": 200,
        "sub/../found.sarif": 200,
        str(site.home / "repo/sub/found.sarif"): 200,
        str(site.home / "roots/one/found.sarif"): 200,
        "none.sarif": 404,
        str(site.home / "outside/found.sarif"): 403,
        str(site.home / "outside/none.sarif"): 403,
        "../outside/found.sarif": 403,
        "way-out/found.sarif": 403,
        "/etc/passwd": 403,
        "a\0b": 400,
    }

    statuses = {
        path: site.request_status("triage_ingest", source="sarif", inputPath=path) for path in expected_statuses
    }

    assert statuses == expected_statuses


def test_the_repository_of_an_explore_tool_must_be_inside_the_fence(site: FencedSite) -> None:
    expected_statuses = {"repo": 200, "roots/one": 200, "outside": 403, "repo/way-out": 403, "mono/allowed": 403}

    statuses = {
        folder: site.request_status("read_lines", repo=str(site.home / folder), path="found.sarif")
        for folder in expected_statuses
    }

    assert statuses == expected_statuses
    assert site.request_status("read_lines", path="found.sarif") == 200
    assert site.request_status("grep_code", repo="/etc", pattern="root") == 403


def test_a_relative_file_begins_in_the_repository_that_is_named(site: FencedSite) -> None:
    one = str(site.home / "roots/one")

    def ingest_file(path: str) -> int:
        return site.request_status("triage_ingest", source="sarif", inputPath=path, repoPath=one)

    assert ingest_file("found.sarif") == 200
    assert ingest_file("../two/none.sarif") == 404
    assert ingest_file("../../outside/found.sarif") == 403


@pytest.mark.parametrize("tool", ["workspace_status", "search"])
def test_a_workspace_and_its_repositories_must_be_inside_the_fence(site: FencedSite, tool: str) -> None:
    args = {"query": "x"} if tool == "search" else {}
    good = 409 if tool == "search" else 200  # none of them has an index
    workspace_cases = [
        (("repo", "repo/sub"), good),
        (("roots", "roots/one", "roots/two"), good),
        (("repo", "repo", "outside"), 403),
        (("roots/one", "roots/one", "outside"), 403),
        (("outside", "repo"), 403),
    ]

    for (folder, *roots), status in workspace_cases:
        path = site.write_workspace(folder, *roots)

        assert site.request_status(tool, workspacePath=path, **args) == status, (folder, roots)


def test_a_workspace_without_a_repository_begins_in_the_default_one(site: FencedSite) -> None:
    site.write_workspace("repo", "repo")

    assert site.request_status("workspace_status", workspacePath="all.jsonc") == 200
    assert site.request_status("workspace_status", workspacePath="../outside/all.jsonc") == 403
    assert site.request_status("workspace_status", workspacePath="~/outside/all.jsonc") == 404


def test_an_index_from_elsewhere_must_be_inside_the_fence(site: FencedSite) -> None:
    outside = str(site.home / "outside")

    assert site.request_status("build_index", useArtifacts=True, artifactsDir=outside) == 403


@requirement("b:http:403-repo")
def test_an_allowed_folder_does_not_open_the_repository_around_it(site: FencedSite) -> None:
    for folder in ("mono/allowed", "mono/allowed/a"):
        place = str(site.home / folder)

        assert site.request_status("index_status", repoPath=place) == 403
        assert site.web.get(f"/status?repo={place}").status == 403


def test_the_repository_around_the_default_folder_is_the_operators_choice(tmp_path: Path) -> None:
    (tmp_path / "mono/.git").mkdir(parents=True)
    (tmp_path / "mono/part").mkdir()
    (tmp_path / "mono/other").mkdir()
    command = (*CLEATS_COMMAND, "code", "--repo", str(tmp_path / "mono/part"))
    with run_web_server(*command, home=tmp_path, CLEATS_TELEMETRY="off") as web:
        default_reply, named_reply = web.call_tool("index_status"), web.call_tool("index_status", repoPath=".")
        other = web.call_tool("index_status", repoPath="../other")

    assert default_reply.result["repoPath"] == named_reply.result["repoPath"] == str(tmp_path / "mono")
    assert other.status == 403


def test_what_removes_things_keeps_to_one_repository(site: FencedSite) -> None:
    swept = site.web.call_tool("cache_gc", dryRun=True, maxBytes=1)

    assert site.request_status("clean_artifacts", all=True, dryRun=True) == 400
    assert swept.status == 200
    assert {Path(removal["root"]).name for removal in swept.json["result"]["removals"]} <= {"repo"}
