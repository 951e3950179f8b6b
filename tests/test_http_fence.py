"""What callers from the network may name of the real tools: repositories, files, workspaces."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import requirement
from tests.web import CLEATS, Web, parsed, serving

FINDINGS = {"version": "2.1.0", "runs": []}


@dataclass
class Site:
    """A server with a repository, one allowed root beside it, and places that are neither."""

    web: Web
    home: Path

    def status(self, tool: str, **arguments: Any) -> int:
        """How a call ends, over its plain route and as a stream."""
        plain = self.web.call(tool, **arguments)
        stream = self.web.post(f"/tools/{tool}/stream", arguments)
        if plain.status == 403:
            refused = stream.json if stream.status == 403 else parsed(stream.body)[-2][1]
            assert plain.error["code"] == refused["error"]["code"] == "FORBIDDEN"
        return plain.status

    def workspace(self, folder: str, *roots: str) -> str:
        repos = [{"root": str(self.home / root), "alias": root} for root in roots]
        path = self.home / folder / "all.jsonc"
        path.write_text(json.dumps({"schemaVersion": 1, "repos": repos}))
        return str(path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("site")
    for folder in ("repo/sub", "roots/one", "roots/two", "outside", "mono/.git", "mono/allowed/a"):
        (home / folder).mkdir(parents=True)
    for folder in ("repo", "repo/sub", "roots/one", "outside", "mono"):
        (home / folder / "found.sarif").write_text(json.dumps(FINDINGS))
    (home / "repo" / "way-out").symlink_to(home / "outside")
    roots = ",".join(str(home / each) for each in ("roots", "mono/allowed"))
    command = (*CLEATS, "code", "--repo", str(home / "repo"))
    with serving(*command, home=home, CLEATS_HTTP_ROOTS=roots, CLEATS_TELEMETRY="off") as web:
        yield Site(web, home)


@requirement("b:http:403-repo")
def test_a_file_of_findings_must_be_inside_the_fence(site: Site) -> None:
    asked = {
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

    seen = {path: site.status("triage_ingest", source="sarif", inputPath=path) for path in asked}

    assert seen == asked


def test_a_relative_file_begins_in_the_repository_that_is_named(site: Site) -> None:
    one = str(site.home / "roots/one")

    def status(path: str) -> int:
        return site.status("triage_ingest", source="sarif", inputPath=path, repoPath=one)

    assert status("found.sarif") == 200
    assert status("../two/none.sarif") == 404
    assert status("../../outside/found.sarif") == 403


@pytest.mark.parametrize("tool", ["workspace_status", "search"])
def test_a_workspace_and_its_repositories_must_be_inside_the_fence(site: Site, tool: str) -> None:
    given = {"query": "x"} if tool == "search" else {}
    good = 409 if tool == "search" else 200  # none of them has an index
    asked = [
        (("repo", "repo/sub"), good),
        (("roots", "roots/one", "roots/two"), good),
        (("repo", "repo", "outside"), 403),
        (("roots/one", "roots/one", "outside"), 403),
        (("outside", "repo"), 403),
    ]

    for (folder, *roots), status in asked:
        path = site.workspace(folder, *roots)

        assert site.status(tool, workspacePath=path, **given) == status, (folder, roots)


def test_a_workspace_without_a_repository_begins_in_the_default_one(site: Site) -> None:
    site.workspace("repo", "repo")

    assert site.status("workspace_status", workspacePath="all.jsonc") == 200
    assert site.status("workspace_status", workspacePath="../outside/all.jsonc") == 403
    assert site.status("workspace_status", workspacePath="~/outside/all.jsonc") == 404


def test_an_index_from_elsewhere_must_be_inside_the_fence(site: Site) -> None:
    outside = str(site.home / "outside")

    assert site.status("build_index", useArtifacts=True, artifactsDir=outside) == 403


@requirement("b:http:403-repo")
def test_an_allowed_folder_does_not_open_the_repository_around_it(site: Site) -> None:
    for folder in ("mono/allowed", "mono/allowed/a"):
        place = str(site.home / folder)

        assert site.status("index_status", repoPath=place) == 403
        assert site.web.get(f"/status?repo={place}").status == 403


def test_the_repository_around_the_default_folder_is_the_operators_choice(tmp_path: Path) -> None:
    (tmp_path / "mono/.git").mkdir(parents=True)
    (tmp_path / "mono/part").mkdir()
    (tmp_path / "mono/other").mkdir()
    command = (*CLEATS, "code", "--repo", str(tmp_path / "mono/part"))
    with serving(*command, home=tmp_path, CLEATS_TELEMETRY="off") as web:
        own, named = web.call("index_status"), web.call("index_status", repoPath=".")
        other = web.call("index_status", repoPath="../other")

    assert own.result["repoPath"] == named.result["repoPath"] == str(tmp_path / "mono")
    assert other.status == 403


def test_what_removes_things_keeps_to_one_repository(site: Site) -> None:
    swept = site.web.call("cache_gc", dryRun=True, maxBytes=1)

    assert site.status("clean_artifacts", all=True, dryRun=True) == 400
    assert swept.status == 200
    assert {Path(each["root"]).name for each in swept.json["result"]["removals"]} <= {"repo"}
