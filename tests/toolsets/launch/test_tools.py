"""Tests of the launch tools over MCP, against a real server process."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Any

import jsonschema
import pytest
import yaml

from tests.support import golden_files
from tests.support.launch_client import LAUNCH_TOOLS, RUN_CONFIG, LaunchToolClient, get_error_code, open_launch_client
from tests.support.launch_remotes import GITHUB_URL, create_repository, redirect_github
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement
from tests.support.spans import read_home_spans
from tests.support.waiting import wait_until

PICTURE_HEX = "89504e470d0a1a0aff00"
UNKNOWN_RUN_ID = "r_2000-01-01T00-00-00Z_00000000"


@dataclass
class RecordedRun:
    """One run from its start to its pull request, and every answer in between."""

    client: LaunchToolClient
    run_id: str = ""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    run_ids: list[str] = field(default_factory=list)
    """The runs that there were after the second start with the same key."""

    def call_tool(self, name: str, tool: str, **arguments: Any) -> dict[str, Any]:
        self.answers[name] = self.client.call(f"launch_{tool}", **arguments)
        return self.answers[name]

    def call_for_run(self, name: str, tool: str, **arguments: Any) -> None:
        self.call_tool(name, tool, run_id=self.run_id, **arguments)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedRun]:
    with open_launch_client(tmp_path_factory.mktemp("home")) as launch_client:
        launch_client.set_trouble(page="BAD1 and BAD8\n", picture=PICTURE_HEX)
        recorded_run = RecordedRun(launch_client)
        run_config = {**RUN_CONFIG, "locale": "en"}
        recorded_run.run_id = recorded_run.call_tool("start", "start_run", run_config=run_config, idempotency_key="k")[
            "run_id"
        ]
        recorded_run.call_for_run("resume", "resume")
        again = {**RUN_CONFIG, "locales": ["en"]}
        recorded_run.call_tool("again", "start_run", run_config=again, idempotency_key="k")
        recorded_run.run_ids = [run["run_id"] for run in launch_client.call("launch_list_runs")["runs"]]
        other = {**RUN_CONFIG, "max_fix_attempts": 9}
        recorded_run.call_tool("other", "start_run", run_config=other, idempotency_key="k")
        recorded_run.call_for_run("status", "get_status")
        recorded_run.call_for_run("too early", "open_pr")
        recorded_run.call_for_run("fix", "fix_next")
        recorded_run.call_for_run("no luck", "fix_next")
        page = launch_client.home / f".local/share/cleats/launch/runs/{recorded_run.run_id}/work/site"
        (page / "content/docs/index.md").write_text("Good, by hand.\n")
        recorded_run.call_for_run("validate", "validate")
        recorded_run.call_for_run("too late", "fix_next")
        recorded_run.call_for_run("open", "open_pr")
        recorded_run.call_for_run("end", "get_status")
        recorded_run.call_for_run("ended", "resume")
        recorded_run.call_for_run("kept", "cancel")
        yield recorded_run


@requirement("e:start", "e:answer:ok")
def test_a_run_starts_at_once_and_says_its_id_and_state(story: RecordedRun) -> None:
    assert story.answers["start"] == {"ok": True, "run_id": story.run_id, "state": "CREATED"}


@requirement("e:answer:ok", "e:answer:run-id", "e:answer:error", "e:error:shape")
def test_every_answer_says_ok_and_its_run_and_every_failure_why(story: RecordedRun) -> None:
    for name, answer in story.answers.items():
        assert answer["ok"] in (True, False)
        assert ("error" in answer) is not answer["ok"]
        assert answer.get("run_id") == (None if name == "other" else story.run_id), name
    refusal = [recorded_answer["error"] for recorded_answer in story.answers.values() if not recorded_answer["ok"]]
    assert len(refusal) == 5
    for error in refusal:
        assert [*error] == ["code", "message", "retryable", "details"]
        assert (type(error["code"]), type(error["message"])) == (str, str)
        assert (type(error["retryable"]), type(error["details"])) == (bool, dict)


@requirement("e:start:idempotent")
def test_the_same_key_and_the_same_meaning_give_the_same_run(story: RecordedRun) -> None:
    assert story.answers["again"] == {"ok": True, "run_id": story.run_id, "state": "VALIDATING"}
    assert story.run_ids == [story.run_id]
    assert story.answers["other"]["ok"] is False


def test_the_same_key_with_another_meaning_is_refused_and_says_which_run_has_it(
    story: RecordedRun,
) -> None:
    error = story.answers["other"]["error"]

    assert error["code"] == "INVALID_INPUT"
    assert error["details"]["existing_run_id"] == story.run_id
    assert error["details"]["existing_hash"] != error["details"]["given_hash"]


@requirement("e:get-status", "e:status:shape", "e:answer:run-id", "e:resume")
def test_a_status_has_the_state_the_sections_the_issues_and_the_artifacts(story: RecordedRun) -> None:
    answer = story.answers["status"]

    status = answer["status"]
    assert answer == story.answers["resume"]
    assert (answer["run_id"], status["run_id"]) == (story.run_id, story.run_id)
    assert status["state"] == "VALIDATING"
    assert status["section_states"] == {"docs": "BLOCKED"}
    assert [set(issue) for issue in status["open_issues"]] == [{"issue_id", "severity", "gate", "title"}] * 2
    assert {issue["title"] for issue in status["open_issues"]} == {"BAD1", "BAD8"}
    names = [artifact["name"] for artifact in status["artifacts"]]
    assert names == sorted(names)
    assert {"page_plan.json", "validation_report.json", "drafts/docs/index.md"} <= set(names)


@requirement("e:pr:state", "e:code:illegal-state", "e:error:shape", "e:answer:error")
def test_a_run_that_is_not_ready_opens_no_request(story: RecordedRun) -> None:
    answer = story.answers["too early"]

    error = answer["error"]
    assert set(answer) == {"ok", "run_id", "error"}
    assert answer["run_id"] == story.run_id
    assert set(error) == {"code", "message", "retryable", "details"}
    assert (error["code"], error["retryable"]) == ("ILLEGAL_STATE", False)
    assert error["details"]["state"] == "VALIDATING"
    assert error["details"]["allowed"] == ["READY_FOR_PR"]


@requirement("e:fix", "e:fix:answer")
def test_a_fix_says_what_it_fixed_with_which_patches_and_what_is_left(story: RecordedRun) -> None:
    answer = story.answers["fix"]

    [first] = [
        issue["issue_id"] for issue in story.answers["status"]["status"]["open_issues"] if issue["title"] == "BAD1"
    ]
    assert answer["fixed_issue_id"] == first
    assert answer["applied_patch_ids"] == ["patch_BAD1"]
    assert answer["remaining_blockers"] == 1
    assert [issue["message"] for issue in answer["validation_report"]["issues"]] == ["BAD8"]


def test_a_fix_that_fixed_nothing_names_no_issue(story: RecordedRun) -> None:
    answer = story.answers["no luck"]

    assert (answer["fixed_issue_id"], answer["applied_patch_ids"]) == (None, [])
    assert answer["remaining_blockers"] == 1


@requirement("e:validate")
def test_validation_looks_at_the_worktree_as_it_is_now(story: RecordedRun) -> None:
    answer = story.answers["validate"]

    assert answer["run_id"] == story.run_id
    assert answer["validation_report"]["ok"] is True


@requirement("e:fix:state")
def test_there_is_nothing_to_fix_in_a_run_that_is_no_longer_validating(story: RecordedRun) -> None:
    assert get_error_code(story.answers["too late"]) == "ILLEGAL_STATE"


@requirement("e:pr", "e:pr:report")
def test_a_request_has_an_address_a_branch_and_a_commit(story: RecordedRun) -> None:
    answer = story.answers["open"]

    assert set(answer) == {"ok", "run_id", "pr_url", "branch", "commit_sha"}
    assert answer["branch"].startswith(f"launch/{story.run_id}/")
    assert len(answer["commit_sha"]) == 40
    assert story.answers["end"]["status"]["state"] == "DONE"


def test_a_run_that_is_done_can_neither_go_on_nor_be_cancelled(story: RecordedRun) -> None:
    assert get_error_code(story.answers["ended"]) == "ILLEGAL_STATE"
    assert get_error_code(story.answers["kept"]) == "ILLEGAL_STATE"


def test_the_answers_are_what_clients_have_come_to_know(story: RecordedRun) -> None:
    text = json.dumps(story.answers, indent=2, sort_keys=True).replace(story.run_id, "r_ID")
    for form, word in ((r"[0-9a-f]{64}", "SHA256"), (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME")):
        text = re.sub(form, word, text)

    golden_files.compare_golden_file("launch_answers.json", text + "\n")


@requirement("e:get-artifact", "e:artifact:shape")
def test_an_artifact_comes_with_its_type_and_the_hash_of_its_bytes(story: RecordedRun) -> None:
    answer = story.client.call_for_run(story.run_id, "get_artifact", artifact_name="page_plan.json")

    artifact = answer["artifact"]
    assert answer["run_id"] == story.run_id
    assert set(artifact) == {"name", "content_type", "sha256", "content"}
    assert (artifact["name"], artifact["content_type"]) == ("page_plan.json", "application/json")
    assert artifact["sha256"] == hashlib.sha256(artifact["content"].encode()).hexdigest()
    assert {"name": "page_plan.json", "sha256": artifact["sha256"]} in story.answers["end"]["status"]["artifacts"]


@requirement("e:artifact:base64")
def test_what_is_no_text_is_base64_and_its_type_says_so(story: RecordedRun) -> None:
    name = "drafts/docs/picture.png"

    artifact = story.client.call_for_run(story.run_id, "get_artifact", artifact_name=name)["artifact"]

    data = base64.b64decode(artifact["content"], validate=True)
    assert data == bytes.fromhex(PICTURE_HEX)
    assert artifact["content_type"] == "image/png;base64"
    assert artifact["sha256"] == hashlib.sha256(data).hexdigest()


@requirement("e:code:invalid-input")
@pytest.mark.parametrize("name", ["nothing.json", "../snapshot.json", "/etc/passwd", "objects", "", "page_plan.json\0"])
def test_a_name_that_is_not_in_the_index_does_not_exist(story: RecordedRun, name: str) -> None:
    answer = story.client.call_for_run(story.run_id, "get_artifact", artifact_name=name)

    assert get_error_code(answer) == "INVALID_INPUT"
    assert "page_plan.json" in answer["error"]["details"]["known"]


@requirement("e:telemetry:work-items")
def test_the_log_has_every_step_as_a_work_item_that_began_and_ended(story: RecordedRun) -> None:
    events = story.client.read_events(story.run_id)

    started_keys = [e["payload"]["scope_key"] for e in events if e["type"] == "WORK_ITEM_STARTED"]
    finished_events = [e for e in events if e["type"] == "WORK_ITEM_FINISHED"]
    assert started_keys[:3] == ["clone", "inventory", "facts"]
    assert started_keys[-2:] == ["commit", "request"]
    assert len(started_keys) == len(finished_events)


@requirement("e:code:gate-failed", "e:validate:ok")
def test_a_failed_gate_is_a_verdict_in_the_report_and_no_error(story: RecordedRun) -> None:
    answer = story.answers["fix"]

    assert answer["ok"] is True
    assert answer["validation_report"]["ok"] is False


@requirement("e:code:run-not-found")
@pytest.mark.parametrize(
    "verb",
    ["get_status", "get_artifact", "validate", "fix_next", "resume", "cancel", "open_pr"],
)
def test_an_id_that_no_run_has_is_not_found_by_any_tool(story: RecordedRun, verb: str) -> None:
    more = {"artifact_name": "page_plan.json"} if verb == "get_artifact" else {}

    answer = story.client.call_for_run(UNKNOWN_RUN_ID, verb, **more)

    assert get_error_code(answer) == "RUN_NOT_FOUND"
    assert answer["run_id"] == UNKNOWN_RUN_ID


@requirement("e:code:invalid-input")
@pytest.mark.parametrize("run_id", ["", "x", "../../../etc", "a" * 65, "r_1\n2345678", "r 12345678"])
def test_what_cannot_be_an_id_is_invalid_input(story: RecordedRun, run_id: str) -> None:
    answer = story.client.call_for_run(run_id, "get_status")

    assert get_error_code(answer) == "INVALID_INPUT"
    assert "run_id" not in answer


@requirement("e:code:schema")
def test_a_configuration_that_does_not_fit_is_refused_with_pointers(story: RecordedRun) -> None:
    before = story.client.call("launch_list_runs")["runs"]

    answer = story.client.call("launch_start_run", run_config={**RUN_CONFIG, "github_ref": "main"})

    assert get_error_code(answer) == "SCHEMA_VALIDATION_FAILED"
    assert [field_error["path"] for field_error in answer["error"]["details"]["errors"]] == ["/github_ref"]
    assert story.client.call("launch_list_runs")["runs"] == before


@requirement("e:start:config")
@pytest.mark.parametrize(
    "change",
    [{"github_ref": "main"}, {"locales": "en"}, {"target_platform": 1}, {"required_sections": []}, {"unknown": True}],
)
def test_a_configuration_is_judged_by_the_published_schema(story: RecordedRun, change: dict[str, Any]) -> None:
    schema_path = REPOSITORY_ROOT / "src/cleats/toolsets/launch/schemas/run_config.schema.json"
    oracle = jsonschema.Draft202012Validator(json.loads(schema_path.read_text()))
    run_config = {**RUN_CONFIG, **change}
    faults = ["".join(f"/{part}" for part in error.absolute_path) for error in oracle.iter_errors(run_config)]

    answer = story.client.call("launch_start_run", run_config=run_config)

    assert faults
    assert get_error_code(answer) == "SCHEMA_VALIDATION_FAILED"
    given_paths = {fault["path"] for fault in answer["error"]["details"]["errors"]}
    assert all(any(path.startswith(fault) for path in given_paths) for fault in faults)


@requirement("e:list", "e:list:filter")
def test_runs_are_listed_by_product_and_state_newest_first_in_pages(story: RecordedRun) -> None:
    launch_client = story.client
    run_ids = [launch_client.start_run(family=family) for family in ("pdf", "pdf", "zip")]

    newest = launch_client.call("launch_list_runs", limit=1)
    older_runs = launch_client.call("launch_list_runs", limit=2, cursor=newest["next_cursor"])
    pdf = launch_client.call("launch_list_runs", filter={"product_slug": "pdf", "state": "CREATED"})
    done = launch_client.call("launch_list_runs", filter={"state": "DONE"})

    assert [run["run_id"] for run in newest["runs"]] == [run_ids[2]]
    assert [run["run_id"] for run in older_runs["runs"]] == [run_ids[1], run_ids[0]]
    assert {run["run_id"] for run in pdf["runs"]} == set(run_ids[:2])
    [run] = done["runs"]
    assert set(run) == {"run_id", "product_slug", "state", "started_at", "finished_at"}
    assert run["run_id"] == story.run_id
    assert run["started_at"] < run["finished_at"]
    assert pdf["runs"][0]["finished_at"] is None
    assert launch_client.call("launch_list_runs", filter={"product_slug": "none"})["runs"] == []
    assert get_error_code(launch_client.call("launch_list_runs", cursor="x")) == "INVALID_INPUT"


@requirement("e:cancel", "e:code:cancelled")
def test_a_cancelled_run_stays_cancelled_for_every_tool(story: RecordedRun) -> None:
    launch_client = story.client
    run_id = launch_client.start_run()

    first = launch_client.call_for_run(run_id, "cancel")
    second = launch_client.call_for_run(run_id, "cancel")

    assert first == {"ok": True, "run_id": run_id, "cancelled": True, "state": "CANCELLED"}
    assert second == first
    for verb in ("validate", "fix_next", "resume", "open_pr"):
        assert get_error_code(launch_client.call_for_run(run_id, verb)) == "CANCELLED"


@requirement("e:validate:state", "e:code:illegal-state")
def test_a_run_that_has_no_pages_yet_is_not_validated(story: RecordedRun) -> None:
    run_id = story.client.start_run()

    answer = story.client.call_for_run(run_id, "validate")

    assert get_error_code(answer) == "ILLEGAL_STATE"
    assert answer["error"]["details"]["allowed"][0] == "LINKING"


TROUBLE_CODES = {
    "TOOLCHAIN_MISSING": False,
    "ALLOWED_PATHS_VIOLATION": False,
    "COMMIT_SERVICE_ERROR": True,
    "REPO_NOT_FOUND": True,
}


@requirement("e:code:toolchain", "e:code:commit-service", "e:accept:retryable")
@pytest.mark.parametrize("name", TROUBLE_CODES)
def test_what_a_worker_fails_with_is_what_the_caller_is_told(story: RecordedRun, name: str) -> None:
    retryable = TROUBLE_CODES[name]
    fault = {"code": name, "retryable": retryable, "times": 1, "details": {"reason": "test"}}
    story.client.set_trouble(**{"raise": {"clone": fault}})
    run_id = story.client.start_run()

    answer = story.client.call_for_run(run_id, "resume")

    assert (get_error_code(answer), answer["error"]["retryable"]) == (name, retryable)
    assert answer["error"]["details"]["reason"] == "test"
    assert str(story.client.home) not in json.dumps(answer)
    [issue] = story.client.call_for_run(run_id, "get_status")["status"]["open_issues"]
    assert issue["severity"] == "blocker"


@requirement("e:code:internal")
def test_a_crash_is_internal_and_names_its_class_and_no_path(story: RecordedRun) -> None:
    story.client.set_trouble(crash={"clone": 1})
    run_id = story.client.start_run()

    answer = story.client.call_for_run(run_id, "resume")

    assert get_error_code(answer) == "INTERNAL"
    assert answer["error"]["details"]["cause_class"] == "ZeroDivisionError"
    assert str(story.client.home) not in json.dumps(answer)


@requirement("e:fix:stop", "e:code:fix-exhausted")
def test_a_run_that_has_used_up_its_fixes_fails_and_says_so(story: RecordedRun) -> None:
    story.client.set_trouble(page="BAD1\n")
    run_id = story.client.start_run(max_fix_attempts=0, drive={"mode": "auto"})
    story.client.call_for_run(run_id, "resume")

    answer = story.client.call_for_run(run_id, "fix_next")

    assert get_error_code(answer) == "FIX_EXHAUSTED"
    assert story.client.call_for_run(run_id, "get_status")["status"]["state"] == "FAILED"


@requirement("e:resume")
def test_a_stepwise_run_rests_at_each_stable_boundary(story: RecordedRun) -> None:
    story.client.set_trouble(page="Good.\n")
    run_id = story.client.start_run()

    states = [story.client.call_for_run(run_id, "resume")["status"]["state"] for _ in range(4)]

    assert states == ["PLAN_READY", "DRAFT_READY", "READY_FOR_PR", "READY_FOR_PR"]


@requirement("e:validate:worktree")
def test_without_a_worktree_there_is_nothing_to_validate_or_fix(story: RecordedRun) -> None:
    story.client.set_trouble(page="BAD1\n")
    run_id = story.client.start_run(drive={"mode": "auto"})
    story.client.call_for_run(run_id, "resume")
    folder = story.client.home / f".local/share/cleats/launch/runs/{run_id}"
    (folder / "work/site").rename(folder / "work/gone")

    for verb in ("validate", "fix_next"):
        refusal = story.client.call_for_run(run_id, verb)["error"]
        assert (refusal["code"], refusal["details"]["reason"]) == ("ILLEGAL_STATE", "no_worktree")


def test_without_its_source_nothing_is_judged_or_taken_away_and_the_run_stays(
    story: RecordedRun,
) -> None:
    story.client.set_trouble(page="BAD1\n")
    run_id = story.client.start_run(drive={"mode": "auto"})
    story.client.call_for_run(run_id, "resume")
    work = story.client.home / f".local/share/cleats/launch/runs/{run_id}/work"
    (work / "repo").rename(work / "gone")

    for verb in ("validate", "fix_next"):
        refusal = story.client.call_for_run(run_id, verb)["error"]
        assert (refusal["code"], refusal["details"]["reason"]) == ("ILLEGAL_STATE", "no_source")
    (work / "gone").rename(work / "repo")

    assert story.client.call_for_run(run_id, "fix_next")["ok"]


@pytest.mark.parametrize(("gone", "reason"), [("site", "no_worktree"), ("repo", "no_source")])
def test_a_run_whose_checkout_is_away_waits_for_it_and_goes_on(story: RecordedRun, gone: str, reason: str) -> None:
    story.client.set_trouble()
    run_id = story.client.start_run(drive={"mode": "stepwise"})
    story.client.call_for_run(run_id, "resume")
    work = story.client.home / f".local/share/cleats/launch/runs/{run_id}/work"
    (work / gone).rename(work / "gone")

    refusal = story.client.call_for_run(run_id, "resume")["error"]
    (work / "gone").rename(work / gone)

    assert (refusal["code"], refusal["details"]["reason"]) == ("ILLEGAL_STATE", reason)
    assert story.client.call_for_run(run_id, "resume")["status"]["state"] == "DRAFT_READY"


def test_a_run_on_storage_that_is_not_mounted_waits_for_it_and_goes_on(story: RecordedRun) -> None:
    story.client.set_trouble()
    run_id = story.client.start_run(drive={"mode": "stepwise"})
    story.client.call_for_run(run_id, "resume")
    runs = story.client.home / ".local/share/cleats/launch/runs"
    runs.rename(runs.with_name("elsewhere"))

    refusal = story.client.call_for_run(run_id, "resume")["error"]
    rmtree(runs)
    runs.with_name("elsewhere").rename(runs)

    assert (refusal["code"], refusal["details"]["reason"]) == ("ILLEGAL_STATE", "no_worktree")
    assert "mounting" in refusal["details"]["hint"]
    assert story.client.call_for_run(run_id, "resume")["status"]["state"] == "DRAFT_READY"


def test_without_a_worktree_there_is_nothing_to_publish_and_the_run_stays(story: RecordedRun) -> None:
    story.client.set_trouble()
    run_id = story.client.start_run(drive={"mode": "auto"})
    story.client.call_for_run(run_id, "resume")
    folder = story.client.home / f".local/share/cleats/launch/runs/{run_id}"
    (folder / "work/site").rename(folder / "work/gone")

    refusal = story.client.call_for_run(run_id, "open_pr")["error"]

    assert (refusal["code"], refusal["details"]["reason"]) == ("ILLEGAL_STATE", "no_worktree")
    assert story.client.call_for_run(run_id, "get_status")["status"]["state"] == "READY_FOR_PR"


@requirement("e:accept:trace", "e:telemetry:call")
def test_a_run_can_be_followed_from_a_call_to_its_span_and_its_events(tmp_path: Path) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with open_launch_client(tmp_path) as launch_client:
        run_id = launch_client.start_run()
        launch_client.peer.send_call(99, "launch_cancel", {"traceparent": parent}, run_id=run_id)
        launch_client.peer.wait_for_answer(99)
        events = launch_client.read_events(run_id)
        launch_client.peer.close_input()
        launch_client.peer.wait_for_exit()

    [file] = (tmp_path / ".local/share/cleats/telemetry").iterdir()
    spans = [json.loads(line) for line in file.read_text().splitlines()]
    tools = [span["attributes"]["cleats.tool"] for span in spans]
    assert tools == ["launch_start_run", "launch_cancel", "launch_get_artifact"]
    assert {span["attributes"]["cleats.run_id"] for span in spans} == {run_id}
    start, cancel, _ = ((span["trace_id"], span["span_id"]) for span in spans)
    traces = [(event["trace_id"], event["span_id"]) for event in events]
    assert traces[0] == start
    assert traces[-1] == cancel
    assert cancel[0] == "0af7651916cd43dd8448eb211c80319c"


@requirement("e:telemetry:call")
def test_every_call_of_every_tool_leaves_a_span_however_it_ends(tmp_path: Path) -> None:
    argument_values = {"artifact_name": "x", "run_config": {}, "url": "x", "github_repo_url": "x"}
    with open_launch_client(tmp_path) as launch_client:
        for tool in LAUNCH_TOOLS:
            needs = tool.input.get("required", ())
            launch_client.call(tool.name, **{name: argument_values.get(name, UNKNOWN_RUN_ID) for name in needs})
        launch_client.call("launch_start_run_from_url", url="x")
        launch_client.peer.send_call("refused", "launch_get_status")
        launch_client.peer.wait_for_answer("refused")
        launch_client.peer.close_input()
        launch_client.peer.wait_for_exit()

    span_names = [
        (span.attributes["cleats.tool"], span.attributes["cleats.outcome"]) for span in read_home_spans(tmp_path)
    ]
    failing_tools = [tool.name for tool in LAUNCH_TOOLS if tool.name != "launch_list_runs"]
    assert sorted(span_names) == sorted(
        [
            *((name, "Failed") for name in [*failing_tools, "launch_start_run_from_url"]),
            ("launch_list_runs", "Done"),
            ("launch_get_status", "Rejected"),
        ]
    )


@requirement("e:telemetry:work-items")
def test_a_worker_that_fails_is_a_work_item_that_failed(story: RecordedRun) -> None:
    story.client.set_trouble(**{"raise": {"facts": {"code": "TOOLCHAIN_MISSING", "times": 1}}})
    run_id = story.client.start_run()
    story.client.call_for_run(run_id, "resume")

    items = [e for e in story.client.read_events(run_id) if e["type"].startswith("WORK_ITEM_")]

    assert [e["type"].removeprefix("WORK_ITEM_") for e in items] == [
        *("STARTED", "FINISHED", "STARTED", "FINISHED", "STARTED", "FAILED")
    ]
    started_item, failed_item = (item["payload"] for item in items[-2:])
    assert started_item["scope_key"] == "facts"
    assert failed_item["work_item_id"] == started_item["work_item_id"]
    assert failed_item["error"]["code"] == "TOOLCHAIN_MISSING"


def test_a_run_goes_on_in_the_background_to_its_first_decision(tmp_path: Path) -> None:
    with open_launch_client(tmp_path) as launch_client:
        run_id = launch_client.start_run(drive={"mode": "auto"})

        def read_state() -> str:
            run_state: str = launch_client.call_for_run(run_id, "get_status")["status"]["state"]
            return run_state

        wait_until(lambda: read_state() == "READY_FOR_PR")


@requirement("e:accept:schemas")
def test_every_tool_tells_its_arguments_its_answer_and_an_example(story: RecordedRun) -> None:
    story.client.peer.send_request("list", "tools/list")
    tools_by_name = {tool["name"]: tool for tool in story.client.peer.wait_for_answer("list")["result"]["tools"]}

    assert len(tools_by_name) == 11
    for tool in LAUNCH_TOOLS:
        listed_tool = tools_by_name[tool.name]
        assert listed_tool["inputSchema"]["additionalProperties"] is False
        assert listed_tool["outputSchema"]["required"] == ["ok"]
        assert len(listed_tool["description"]) > 40
        assert tool.examples


def test_bad_arguments_are_refused_before_anything_runs(story: RecordedRun) -> None:
    story.client.peer.send_call("bad", "launch_get_status", run="x")

    error = story.client.peer.wait_for_answer("bad")["error"]

    assert error["code"] == -32602
    assert error["data"]["code"] == "INVALID_REQUEST"


# The quickstarts, with repositories that git finds under the addresses of GitHub.

NAMED_REPOSITORY = "aspose-3d/Aspose.3D-for-Python-via-.NET"
PRODUCT_PAGE_URL = "https://products.aspose.org/3d/en/python/"
REGISTRY_TOML = f'[[product]]\nfamily = "3d"\nplatform = "python"\nrepo_url = "{GITHUB_URL}/{NAMED_REPOSITORY}"\n'


@pytest.fixture(scope="module")
def quick_start_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchToolClient]:
    home = tmp_path_factory.mktemp("quick")
    named_repository = create_repository(home / "named", {"README.md": "# Aspose.3D\n"})
    vague_repository = create_repository(home / "vague", {"README.md": "# Aspose.3D and Aspose.Cells\n"})
    half_named_repository = create_repository(home / "half", {"pyproject.toml": '[project]\nname = "aspose-3d-foss"\n'})
    env = redirect_github(
        home,
        {
            NAMED_REPOSITORY: named_repository.root,
            "o/vague": vague_repository.root,
            "o/half": half_named_repository.root,
        },
    )
    (home / "registry.toml").write_text(REGISTRY_TOML)
    env |= {
        "CLEATS_LAUNCH_REGISTRY": str(home / "registry.toml"),
        "CLEATS_LAUNCH_SITE": f"{GITHUB_URL}/o/site",
    }
    del env["HOME"]
    with open_launch_client(home, **env) as launch_client:
        launch_client.set_trouble(block={"clone": str(home / "gate")})
        yield launch_client


@requirement("e:url:start")
def test_a_product_page_alone_starts_a_run(quick_start_client: LaunchToolClient) -> None:
    answer = quick_start_client.call("launch_start_run_from_product_url", url=PRODUCT_PAGE_URL)

    assert (answer["ok"], answer["state"]) == (True, "CREATED")
    assert answer["derived_config"] == {
        "site": "products.aspose.org",
        "product_slug": "3d",
        "platform": "python",
        "locale": "en",
    }
    config = quick_start_client.read_artifact_text(answer["run_id"], "run_config.yaml")
    assert f"github_repo_url: {GITHUB_URL}/{NAMED_REPOSITORY}" in config


@requirement("e:url:alias")
def test_the_old_name_of_the_quickstart_still_works(quick_start_client: LaunchToolClient) -> None:
    new = quick_start_client.call("launch_start_run_from_product_url", url=PRODUCT_PAGE_URL, idempotency_key="old")
    old = quick_start_client.call("launch_start_run_from_url", url=PRODUCT_PAGE_URL, idempotency_key="old")

    assert old["derived_config"]["product_slug"] == "3d"
    assert (old["run_id"], old["derived_config"]) == (new["run_id"], new["derived_config"])
    alias = LAUNCH_TOOLS.find_alias("launch_start_run_from_url")
    assert alias is not None
    assert alias.deprecated


@requirement("e:url:idempotent")
def test_the_same_key_and_page_give_the_same_run(quick_start_client: LaunchToolClient) -> None:
    first = quick_start_client.call("launch_start_run_from_product_url", url=PRODUCT_PAGE_URL, idempotency_key="page")
    second = quick_start_client.call("launch_start_run_from_product_url", url=PRODUCT_PAGE_URL, idempotency_key="page")

    assert first["run_id"] == second["run_id"]
    assert first["derived_config"] == second["derived_config"]


@requirement("e:url:invalid", "e:url:unsupported")
def test_an_address_of_no_product_starts_nothing(quick_start_client: LaunchToolClient) -> None:
    before = quick_start_client.call("launch_list_runs")["runs"]

    wrong = quick_start_client.call("launch_start_run_from_product_url", url=PRODUCT_PAGE_URL + "more/")
    strange = quick_start_client.call("launch_start_run_from_product_url", url="https://example.org/3d/en/go/")

    assert (get_error_code(wrong), get_error_code(strange)) == ("INVALID_URL", "UNSUPPORTED_SITE")
    assert quick_start_client.call("launch_list_runs")["runs"] == before


def assert_page_starts_run(client: LaunchToolClient, url: str) -> None:
    answer = client.call("launch_start_run_from_product_url", url=url)

    site = url.split("/")[2]
    assert (answer["ok"], answer["state"]) == (True, "CREATED")
    assert answer["derived_config"] == {"site": site, "product_slug": "3d", "platform": "python", "locale": "en"}


@requirement("e:url:pattern:products")
def test_a_page_of_the_products_site_starts_a_run(quick_start_client: LaunchToolClient) -> None:
    assert_page_starts_run(quick_start_client, "https://products.aspose.org/3d/en/python/")


@requirement("e:url:pattern:docs")
@pytest.mark.parametrize("page", ["", "getting-started/"])
def test_a_page_of_the_docs_site_starts_a_run(quick_start_client: LaunchToolClient, page: str) -> None:
    assert_page_starts_run(quick_start_client, f"https://docs.aspose.org/3d/en/python/{page}")


@requirement("e:url:pattern:kb")
@pytest.mark.parametrize("article", ["", "how-to-load/"])
def test_a_page_of_the_kb_site_starts_a_run(quick_start_client: LaunchToolClient, article: str) -> None:
    assert_page_starts_run(quick_start_client, f"https://kb.aspose.org/3d/en/python/{article}")


@requirement("e:url:pattern:blog")
@pytest.mark.parametrize("path", ["3d/python/", "en/3d/python/", "3d/python/a-post/", "en/3d/python/a-post/"])
def test_a_page_of_the_blog_starts_a_run(quick_start_client: LaunchToolClient, path: str) -> None:
    assert_page_starts_run(quick_start_client, f"https://blog.aspose.org/{path}")


@requirement("e:url:pattern:reference")
def test_a_page_of_the_reference_site_starts_a_run(quick_start_client: LaunchToolClient) -> None:
    assert_page_starts_run(quick_start_client, "https://reference.aspose.org/3d/en/python/")


@requirement("e:url:invalid")
@pytest.mark.parametrize("url", ["https://products.aspose.org/3d/de/python/", "https://blog.aspose.org/fr/3d/python/"])
def test_a_page_in_a_language_without_templates_is_refused_before_a_run_exists(
    quick_start_client: LaunchToolClient, url: str
) -> None:
    before = quick_start_client.call("launch_list_runs")["runs"]

    answer = quick_start_client.call("launch_start_run_from_product_url", url=url)

    assert get_error_code(answer) == "INVALID_URL"
    assert answer["error"]["details"]["locales"] == ["en"]
    assert quick_start_client.call("launch_list_runs")["runs"] == before


BUILTIN_REPOSITORY = "aspose-3d-foss/Aspose.3D-FOSS-for-Python"


@requirement("e:url:start")
def test_a_product_page_starts_a_run_without_any_setting(tmp_path: Path) -> None:
    repository = create_repository(tmp_path / "builtin", {"README.md": "# Aspose.3D\n"})
    env = redirect_github(tmp_path, {BUILTIN_REPOSITORY: repository.root})
    del env["HOME"]
    with open_launch_client(tmp_path, **env) as launch_client:
        launch_client.set_trouble(block={"clone": str(tmp_path / "gate")})

        answer = launch_client.call("launch_start_run_from_product_url", url=PRODUCT_PAGE_URL)

        assert (answer["ok"], answer["state"]) == (True, "CREATED")
        config = launch_client.read_artifact_text(answer["run_id"], "run_config.yaml")
        assert f"github_repo_url: {GITHUB_URL}/{BUILTIN_REPOSITORY}" in config
        assert f"github_ref: {repository.run_git('rev-parse', 'HEAD')}" in config
        assert f"site_repo_url: {GITHUB_URL}/Aspose/aspose.org" in config


def test_a_product_without_a_known_repository_says_what_is_missing(quick_start_client: LaunchToolClient) -> None:
    answer = quick_start_client.call("launch_start_run_from_product_url", url="https://docs.aspose.org/gis/en/java/")

    assert get_error_code(answer) == "INVALID_INPUT"
    assert answer["error"]["details"]["missing_fields"] == ["github_repo_url"]
    assert answer["error"]["details"]["suggested_values"] == {
        "github_repo_url": [f"{GITHUB_URL}/aspose-gis/aspose-gis-foss-java"]
    }


@requirement("e:repo:start", "e:repo:defaults", "e:repo:pinned", "e:repo:idempotent")
def test_a_repository_alone_starts_a_run_and_a_head_that_moves_does_not_start_another(
    quick_start_client: LaunchToolClient,
) -> None:
    url = f"{GITHUB_URL}/{NAMED_REPOSITORY}"
    args = {"github_repo_url": url, "idempotency_key": "repo"}

    first = quick_start_client.call("launch_start_run_from_github_repo_url", **args)
    moved_repository = create_repository(quick_start_client.home / "named", {"more.txt": "x"})
    second = quick_start_client.call("launch_start_run_from_github_repo_url", **args)
    renamed_root = moved_repository.root.rename(quick_start_client.home / "gone")
    third = quick_start_client.call("launch_start_run_from_github_repo_url", **args)
    renamed_root.rename(moved_repository.root)

    assert first["state"] == "CREATED"
    derived = first["derived_config"]
    assert derived | {"github_ref": ""} == {
        "family": "3d",
        "target_platform": "python",
        "locales": ["en"],
        "layout_mode": "auto",
        "allow_inference": False,
        "github_repo_url": url,
        "github_ref": "",
    }
    assert derived["github_ref"] == moved_repository.run_git("rev-parse", "HEAD~1")
    for again in (second, third):
        assert (again["run_id"], again["derived_config"]) == (first["run_id"], derived)


@requirement("e:repo:start-run")
def test_a_run_from_a_repository_is_the_run_that_its_configuration_starts(quick_start_client: LaunchToolClient) -> None:
    args = {"github_repo_url": f"{GITHUB_URL}/{NAMED_REPOSITORY}", "idempotency_key": "internal"}
    quick = quick_start_client.call("launch_start_run_from_github_repo_url", **args)
    config = yaml.safe_load(quick_start_client.read_artifact_text(quick["run_id"], "run_config.yaml"))

    started = quick_start_client.call("launch_start_run", run_config=config, idempotency_key="internal")

    assert started == {"ok": True, "run_id": quick["run_id"], "state": "CREATED"}


@requirement("e:repo:ambiguous", "e:repo:no-run")
def test_a_repository_that_leaves_doubt_starts_nothing_and_says_what_is_open(
    quick_start_client: LaunchToolClient,
) -> None:
    before = quick_start_client.call("launch_list_runs")["runs"]

    answer = quick_start_client.call("launch_start_run_from_github_repo_url", github_repo_url=f"{GITHUB_URL}/o/vague")

    assert answer["error"]["message"] == "Could not unambiguously infer required fields"
    assert (get_error_code(answer), answer["error"]["retryable"]) == ("INVALID_INPUT", False)
    details = answer["error"]["details"]
    assert details["missing_fields"] == ["family", "target_platform"]
    assert details["suggested_values"] == {"family": ["3d", "cells"]}
    assert details["signals"]
    assert quick_start_client.call("launch_list_runs")["runs"] == before


@requirement("e:repo:deterministic", "e:repo:signals", "e:repo:threshold")
def test_what_a_repository_shows_is_told_signal_by_signal_and_again_the_same(
    quick_start_client: LaunchToolClient,
) -> None:
    args = {"github_repo_url": f"{GITHUB_URL}/o/half"}

    first = quick_start_client.call("launch_start_run_from_github_repo_url", **args)
    second = quick_start_client.call("launch_start_run_from_github_repo_url", **args)

    details = first["error"]["details"]
    weights = {signal["value"]: signal["weight"] for signal in details["signals"]}
    assert second["error"]["details"] == details
    assert {signal["source"] for signal in details["signals"]} == {"manifest", "package name"}
    assert details["missing_fields"] == ["family", "target_platform"]
    assert all(0 < weight <= 0.80 for weight in weights.values())


@requirement("e:repo:not-found", "e:repo:invalid-url")
def test_a_repository_that_is_not_there_or_none_is_told_apart(quick_start_client: LaunchToolClient) -> None:
    missing_answer = quick_start_client.call(
        "launch_start_run_from_github_repo_url", github_repo_url=f"{GITHUB_URL}/o/gone"
    )
    wrong = quick_start_client.call("launch_start_run_from_github_repo_url", github_repo_url="https://x.org/o/n")

    assert (get_error_code(missing_answer), get_error_code(wrong)) == ("REPO_NOT_FOUND", "INVALID_URL")
    assert str(quick_start_client.home) not in json.dumps(missing_answer)
