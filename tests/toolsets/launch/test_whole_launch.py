"""A test of a launch as an agent does it: the sample package, the real workers, a real server."""

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from tests.support.launch_client import REAL_SERVER_COMMAND, open_launch_client
from tests.support.launch_sites import EXAMPLES_FOLDER, commit_folder
from tests.support.model_server import ModelServer, serve_model
from tests.support.requirements import requirement
from tests.support.spans import EndedSpan, read_home_spans

BROKEN_LINK_TEXT = "\nSee [the missing page](/docs/measurekit/not-there/).\n"


@requirement("e:start", "e:resume", "e:validate", "e:fix", "e:pr", "e:get-artifact", "e:accept:schemas")
@requirement("e:artifact:base64")
def test_a_package_becomes_pages_that_are_checked_repaired_and_requested(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("source", "site"):
        shutil.copytree(EXAMPLES_FOLDER / name, tmp_path / name)
    config: dict[str, Any] = {
        "profile": "plain",
        "family": "measurekit",
        "target_platform": "python",
        "required_sections": ["docs", "reference"],
        "allow_manual_edits": True,
        "drive": {"mode": "stepwise"},  # a call for each part: a busy machine is slow
        "github_repo_url": str(tmp_path / "source"),
        "github_ref": commit_folder(tmp_path / "source"),
        "site_repo_url": f"file://{tmp_path / 'site'}",
    }
    commit_folder(tmp_path / "site")
    with (
        serve_model(ModelServer()) as model,
        open_launch_client(
            home, *REAL_SERVER_COMMAND, PATH=os.environ["PATH"], CLEATS_LAUNCH_MODELS="on"
        ) as launch_client,
    ):
        config["llm"] = {"api_base_url": model.url, "model": "m"}
        run_id = launch_client.call("launch_start_run", run_config=config)["run_id"]
        for _ in range(3):
            status = launch_client.call_for_run(run_id, "resume")["status"]
        folder = home / f".local/share/cleats/launch/runs/{run_id}"
        page = folder / "work/site/content/docs/measurekit/_index.md"
        page.write_text(page.read_text() + BROKEN_LINK_TEXT)
        broken = launch_client.call_for_run(run_id, "validate")["validation_report"]
        refusal = launch_client.call_for_run(run_id, "open_pr")
        fix_result = launch_client.call_for_run(run_id, "fix_next")
        request = launch_client.call_for_run(run_id, "open_pr")
        final_status = launch_client.call_for_run(run_id, "get_status")["status"]
        artifacts = {
            entry["name"]: launch_client.call_for_run(run_id, "get_artifact", artifact_name=entry["name"])["artifact"]
            for entry in final_status["artifacts"]
        }
        archive_uri = f"resource://run/{run_id}/reports/changes.zip"
        launch_client.peer.send_request("list", "resources/list", {})
        listed = {it["uri"]: it for it in launch_client.peer.wait_for_answer("list")["result"]["resources"]}
        launch_client.peer.send_request("read", "resources/read", {"uri": archive_uri})
        [contents] = launch_client.peer.wait_for_answer("read")["result"]["contents"]
        log = launch_client.read_artifact_text(run_id, "events.ndjson")
        described = launch_client.read_artifact_text(run_id, "run_config.yaml")
        launch_client.peer.close_input()
        launch_client.peer.wait_for_exit()

    assert status["state"] == "READY_FOR_PR"
    assert status["section_states"] == {"docs": "DONE", "reference": "DONE"}
    assert {"page_plan.json", "evidence_map.json", "reports/diff_report.md"} <= {
        entry["name"] for entry in status["artifacts"]
    }
    [issue] = [entry for entry in broken["issues"] if entry["severity"] in ("blocker", "error")]
    assert (broken["ok"], issue["gate"]) == (False, "internal_links")
    assert refusal["error"]["code"] == "ILLEGAL_STATE"
    assert fix_result["fixed_issue_id"] == issue["issue_id"]
    assert (fix_result["remaining_blockers"], fix_result["validation_report"]["ok"]) == (0, True)
    assert request["branch"] == f"launch/{run_id}/measurekit"
    assert final_status["state"] == "DONE"
    archive_data = base64.b64decode(artifacts["reports/changes.zip"].pop("content"), validate=True)
    texts = [artifact["content"] for name, artifact in artifacts.items() if name != "reports/changes.zip"]
    assert str(tmp_path) not in "".join([*texts, log, described, json.dumps(final_status)])
    assert str(tmp_path).encode() not in archive_data
    digest = hashlib.sha256(archive_data).hexdigest()
    expected = {"name": "reports/changes.zip", "content_type": "application/zip;base64", "sha256": digest}
    assert artifacts["reports/changes.zip"] == expected
    assert {"name": "reports/changes.zip", "sha256": digest} in final_status["artifacts"]
    assert (listed[archive_uri]["mimeType"], contents["mimeType"]) == ("application/zip", "application/zip")
    assert base64.b64decode(contents["blob"]) == archive_data
    check_change_archive(archive_data, tmp_path / "site", request["commit_sha"], tmp_path / "copy")
    branch = (tmp_path / "site/.git/refs/heads" / request["branch"]).read_text().strip()
    assert branch == request["commit_sha"]
    check_spans(read_home_spans(home), [json.loads(line) for line in log.splitlines()])


@requirement("e:code:allowed-paths")
def test_a_run_that_would_write_outside_its_allowed_paths_fails_and_writes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("source", "site"):
        shutil.copytree(EXAMPLES_FOLDER / name, tmp_path / name)
    config: dict[str, Any] = {
        "profile": "plain",
        "family": "measurekit",
        "target_platform": "python",
        "required_sections": ["docs"],
        "allowed_paths": ["content/elsewhere"],
        "drive": {"mode": "stepwise"},
        "github_repo_url": str(tmp_path / "source"),
        "github_ref": commit_folder(tmp_path / "source"),
        "site_repo_url": f"file://{tmp_path / 'site'}",
    }
    commit_folder(tmp_path / "site")
    with open_launch_client(home, *REAL_SERVER_COMMAND, PATH=os.environ["PATH"]) as launch_client:
        run_id = launch_client.call("launch_start_run", run_config=config)["run_id"]
        answer = launch_client.call_for_run(run_id, "resume")
        while answer["ok"] and answer["status"]["state"] not in ("READY_FOR_PR", "VALIDATING"):
            answer = launch_client.call_for_run(run_id, "resume")
        final_status = launch_client.call_for_run(run_id, "get_status")["status"]

    assert answer["error"]["code"] == "ALLOWED_PATHS_VIOLATION"
    assert answer["error"]["retryable"] is False
    assert answer["error"]["details"]["path"].startswith("content/docs/measurekit/")
    assert final_status["state"] == "FAILED"
    site = home / f".local/share/cleats/launch/runs/{run_id}/work/site"
    assert not (site / "content/docs/measurekit").exists()


def check_change_archive(data: bytes, site: Path, commit: str, copy: Path) -> None:
    """Check that the archive holds what was published, as files and as a patch of the base."""

    def run_git(*args: str, cwd: Path = copy, stdin: bytes | None = None) -> bytes:
        return subprocess.run(["git", *args], cwd=cwd, input=stdin, check=True, capture_output=True).stdout

    run_git("clone", "--quiet", str(site), str(copy), cwd=site)
    run_git("checkout", "--quiet", "--detach", f"{commit}~1")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name.removeprefix("files/"): archive.read(name) for name in archive.namelist()}
    run_git("apply", "--index", "-", stdin=files.pop("changes.patch"))
    assert run_git("write-tree") == run_git("rev-parse", f"{commit}^{{tree}}")
    changed = run_git("diff", "--name-only", "-z", "--no-renames", f"{commit}~1", commit).decode().split("\0")
    assert files == {path: (copy / path).read_bytes() for path in changed if path}


def check_spans(spans: list[EndedSpan], events: list[dict[str, Any]]) -> None:
    """Check that every step, gate, model call and publication of the run is a span in its place."""
    names = {entry.span_id: entry.name for entry in spans}
    parent_names: dict[str, set[str]] = {}
    for span in spans:
        parent_names.setdefault(span.name.split()[0], set()).add(names.get(span.parent_id, ""))
    event_ids = {kind: _collect_event_ids(events, kind) for kind in {entry["type"] for entry in events}}
    span_ids = {kind: {entry.ids for entry in spans if entry.name.startswith(kind)} for kind in parent_names}
    call_names = {"call launch_resume", "call launch_validate", "call launch_fix_next"}
    assert parent_names == {
        "call": {""},
        "step": call_names | {"publication"},
        "gate": {"step validate"},
        "chat": {"step draft"},
        "publication": {"call launch_open_pr"},
    }
    assert event_ids["WORK_ITEM_STARTED"] == event_ids["WORK_ITEM_FINISHED"] == span_ids["step"]
    assert event_ids["GATE_RUN_STARTED"] == event_ids["GATE_RUN_FINISHED"] == span_ids["gate"]
    assert event_ids["LLM_CALL_STARTED"] == event_ids["LLM_CALL_FINISHED"] == span_ids["chat"]
    assert event_ids["PR_OPENED"] == span_ids["publication"]


def _collect_event_ids(events: list[dict[str, Any]], kind: str) -> set[tuple[str, str, str]]:
    return {
        (event["trace_id"], event["span_id"], event["parent_span_id"])
        for event in events
        if event["type"] == kind and "parent_span_id" in event
    }
