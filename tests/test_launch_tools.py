"""The launch tools over MCP, against a real server process."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from tests import golden_files
from tests.launch_client import CONFIG, TOOLS, Client, client, code
from tests.launch_remotes import GITHUB, github, repository
from tests.requirements import requirement
from tests.span_world import of_home
from tests.waiting import until

PICTURE = "89504e470d0a1a0aff00"
NOBODY = "r_2000-01-01T00-00-00Z_00000000"


@dataclass
class Story:
    """One run from its start to its request, and every answer on the way."""

    client: Client
    run_id: str = ""
    said: dict[str, dict[str, Any]] = field(default_factory=dict)

    def tell(self, name: str, tool: str, **arguments: Any) -> dict[str, Any]:
        self.said[name] = self.client.call(f"launch_{tool}", **arguments)
        return self.said[name]

    def about(self, name: str, tool: str, **more: Any) -> None:
        self.tell(name, tool, run_id=self.run_id, **more)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with client(tmp_path_factory.mktemp("home")) as asked:
        asked.trouble(page="BAD1 and BAD8\n", picture=PICTURE)
        told = Story(asked)
        given = {**CONFIG, "locale": "en"}
        told.run_id = told.tell("start", "start_run", run_config=given, idempotency_key="k")[
            "run_id"
        ]
        told.about("resume", "resume")
        again = {**CONFIG, "locales": ["en"]}
        told.tell("again", "start_run", run_config=again, idempotency_key="k")
        other = {**CONFIG, "max_fix_attempts": 9}
        told.tell("other", "start_run", run_config=other, idempotency_key="k")
        told.about("status", "get_status")
        told.about("too early", "open_pr")
        told.about("fix", "fix_next")
        told.about("no luck", "fix_next")
        page = asked.home / f".local/share/cleats/launch/runs/{told.run_id}/work/site"
        (page / "content/docs/index.md").write_text("Good, by hand.\n")
        told.about("validate", "validate")
        told.about("too late", "fix_next")
        told.about("open", "open_pr")
        told.about("end", "get_status")
        told.about("ended", "resume")
        told.about("kept", "cancel")
        yield told


@requirement("e:start", "e:answer:ok")
def test_a_run_starts_at_once_and_says_its_id_and_state(story: Story) -> None:
    assert story.said["start"] == {"ok": True, "run_id": story.run_id, "state": "CREATED"}


@requirement("e:answer:ok", "e:answer:run-id", "e:answer:error", "e:error:shape")
def test_every_answer_says_ok_and_its_run_and_every_failure_why(story: Story) -> None:
    for name, answer in story.said.items():
        assert answer["ok"] in (True, False)
        assert ("error" in answer) is not answer["ok"]
        assert answer.get("run_id") == (None if name == "other" else story.run_id), name
    refused = [each["error"] for each in story.said.values() if not each["ok"]]
    assert len(refused) == 5
    for error in refused:
        assert [*error] == ["code", "message", "retryable", "details"]
        assert (type(error["code"]), type(error["message"])) == (str, str)
        assert (type(error["retryable"]), type(error["details"])) == (bool, dict)


@requirement("e:start:idempotent")
def test_the_same_key_and_the_same_meaning_give_the_same_run(story: Story) -> None:
    assert story.said["again"] == {"ok": True, "run_id": story.run_id, "state": "VALIDATING"}


def test_the_same_key_with_another_meaning_is_refused_and_says_which_run_has_it(
    story: Story,
) -> None:
    error = story.said["other"]["error"]

    assert error["code"] == "INVALID_INPUT"
    assert error["details"]["existing_run_id"] == story.run_id
    assert error["details"]["existing_hash"] != error["details"]["given_hash"]


@requirement("e:get-status", "e:status:shape", "e:answer:run-id", "e:resume")
def test_a_status_has_the_state_the_sections_the_issues_and_the_artifacts(story: Story) -> None:
    answer = story.said["status"]

    status = answer["status"]
    assert answer == story.said["resume"]
    assert (answer["run_id"], status["run_id"]) == (story.run_id, story.run_id)
    assert status["state"] == "VALIDATING"
    assert status["section_states"] == {"docs": "BLOCKED"}
    assert [set(issue) for issue in status["open_issues"]] == [
        {"issue_id", "severity", "gate", "title"}
    ] * 2
    assert {issue["title"] for issue in status["open_issues"]} == {"BAD1", "BAD8"}
    names = [each["name"] for each in status["artifacts"]]
    assert names == sorted(names)
    assert {"page_plan.json", "validation_report.json", "drafts/docs/index.md"} <= set(names)


@requirement("e:pr:state", "e:code:illegal-state", "e:error:shape", "e:answer:error")
def test_a_run_that_is_not_ready_opens_no_request(story: Story) -> None:
    answer = story.said["too early"]

    error = answer["error"]
    assert set(answer) == {"ok", "run_id", "error"}
    assert answer["run_id"] == story.run_id
    assert set(error) == {"code", "message", "retryable", "details"}
    assert (error["code"], error["retryable"]) == ("ILLEGAL_STATE", False)
    assert error["details"]["state"] == "VALIDATING"
    assert error["details"]["allowed"] == ["READY_FOR_PR"]


@requirement("e:fix", "e:fix:answer")
def test_a_fix_says_what_it_fixed_with_which_patches_and_what_is_left(story: Story) -> None:
    answer = story.said["fix"]

    [first] = [
        each["issue_id"]
        for each in story.said["status"]["status"]["open_issues"]
        if each["title"] == "BAD1"
    ]
    assert answer["fixed_issue_id"] == first
    assert answer["applied_patch_ids"] == ["patch_BAD1"]
    assert answer["remaining_blockers"] == 1
    assert [each["message"] for each in answer["validation_report"]["issues"]] == ["BAD8"]


def test_a_fix_that_fixed_nothing_names_no_issue(story: Story) -> None:
    answer = story.said["no luck"]

    assert (answer["fixed_issue_id"], answer["applied_patch_ids"]) == (None, [])
    assert answer["remaining_blockers"] == 1


@requirement("e:validate")
def test_validation_looks_at_the_worktree_as_it_is_now(story: Story) -> None:
    answer = story.said["validate"]

    assert answer["run_id"] == story.run_id
    assert answer["validation_report"]["ok"] is True


@requirement("e:fix:state", "e:fix:report")
def test_there_is_nothing_to_fix_in_a_run_whose_report_is_ok(story: Story) -> None:
    assert code(story.said["too late"]) == "ILLEGAL_STATE"


@requirement("e:pr", "e:pr:report")
def test_a_request_has_an_address_a_branch_and_a_commit(story: Story) -> None:
    answer = story.said["open"]

    assert set(answer) == {"ok", "run_id", "pr_url", "branch", "commit_sha"}
    assert answer["branch"].startswith(f"launch/{story.run_id}/")
    assert len(answer["commit_sha"]) == 40
    assert story.said["end"]["status"]["state"] == "DONE"


def test_a_run_that_is_done_can_neither_go_on_nor_be_cancelled(story: Story) -> None:
    assert code(story.said["ended"]) == "ILLEGAL_STATE"
    assert code(story.said["kept"]) == "ILLEGAL_STATE"


def test_the_answers_are_what_clients_have_come_to_know(story: Story) -> None:
    text = json.dumps(story.said, indent=2, sort_keys=True).replace(story.run_id, "r_ID")
    for form, word in ((r"[0-9a-f]{64}", "SHA256"), (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME")):
        text = re.sub(form, word, text)

    golden_files.check("launch_answers.json", text + "\n")


@requirement("e:get-artifact", "e:artifact:shape")
def test_an_artifact_comes_with_its_type_and_the_hash_of_its_bytes(story: Story) -> None:
    answer = story.client.on(story.run_id, "get_artifact", artifact_name="page_plan.json")

    artifact = answer["artifact"]
    assert answer["run_id"] == story.run_id
    assert set(artifact) == {"name", "content_type", "sha256", "content"}
    assert (artifact["name"], artifact["content_type"]) == ("page_plan.json", "application/json")
    assert artifact["sha256"] == hashlib.sha256(artifact["content"].encode()).hexdigest()
    assert {"name": "page_plan.json", "sha256": artifact["sha256"]} in story.said["end"]["status"][
        "artifacts"
    ]


@requirement("e:artifact:base64")
def test_what_is_no_text_is_base64_and_its_type_says_so(story: Story) -> None:
    name = "drafts/docs/picture.png"

    artifact = story.client.on(story.run_id, "get_artifact", artifact_name=name)["artifact"]

    data = base64.b64decode(artifact["content"], validate=True)
    assert data == bytes.fromhex(PICTURE)
    assert artifact["content_type"] == "image/png;base64"
    assert artifact["sha256"] == hashlib.sha256(data).hexdigest()


@requirement("e:code:invalid-input")
@pytest.mark.parametrize(
    "name", ["nothing.json", "../snapshot.json", "/etc/passwd", "objects", "", "page_plan.json\0"]
)
def test_a_name_that_is_not_in_the_index_does_not_exist(story: Story, name: str) -> None:
    answer = story.client.on(story.run_id, "get_artifact", artifact_name=name)

    assert code(answer) == "INVALID_INPUT"
    assert "page_plan.json" in answer["error"]["details"]["known"]


@requirement("e:telemetry:work-items")
def test_the_log_has_every_step_as_a_work_item_that_began_and_ended(story: Story) -> None:
    events = story.client.events(story.run_id)

    begun = [e["payload"]["scope_key"] for e in events if e["type"] == "WORK_ITEM_STARTED"]
    ended = [e for e in events if e["type"] == "WORK_ITEM_FINISHED"]
    assert begun[:3] == ["clone", "inventory", "facts"]
    assert begun[-2:] == ["commit", "request"]
    assert len(begun) == len(ended)


@requirement("e:code:gate-failed", "e:validate:ok")
def test_a_failed_gate_is_a_verdict_in_the_report_and_no_error(story: Story) -> None:
    answer = story.said["fix"]

    assert answer["ok"] is True
    assert answer["validation_report"]["ok"] is False


@requirement("e:code:run-not-found")
@pytest.mark.parametrize(
    "verb",
    ["get_status", "get_artifact", "validate", "fix_next", "resume", "cancel", "open_pr"],
)
def test_an_id_that_no_run_has_is_not_found_by_any_tool(story: Story, verb: str) -> None:
    more = {"artifact_name": "page_plan.json"} if verb == "get_artifact" else {}

    answer = story.client.on(NOBODY, verb, **more)

    assert code(answer) == "RUN_NOT_FOUND"
    assert answer["run_id"] == NOBODY


@requirement("e:code:invalid-input")
@pytest.mark.parametrize(
    "run_id", ["", "x", "../../../etc", "a" * 65, "r_1\n2345678", "r 12345678"]
)
def test_what_cannot_be_an_id_is_invalid_input(story: Story, run_id: str) -> None:
    answer = story.client.on(run_id, "get_status")

    assert code(answer) == "INVALID_INPUT"
    assert "run_id" not in answer


@requirement("e:code:schema")
def test_a_configuration_that_does_not_fit_is_refused_with_pointers(story: Story) -> None:
    before = story.client.call("launch_list_runs")["runs"]

    answer = story.client.call("launch_start_run", run_config={**CONFIG, "github_ref": "main"})

    assert code(answer) == "SCHEMA_VALIDATION_FAILED"
    assert [each["path"] for each in answer["error"]["details"]["errors"]] == ["/github_ref"]
    assert story.client.call("launch_list_runs")["runs"] == before


@requirement("e:list", "e:list:filter")
def test_runs_are_listed_by_product_and_state_newest_first_in_pages(story: Story) -> None:
    asked = story.client
    made = [asked.start(family=family) for family in ("pdf", "pdf", "zip")]

    newest = asked.call("launch_list_runs", limit=1)
    others = asked.call("launch_list_runs", limit=2, cursor=newest["next_cursor"])
    pdf = asked.call("launch_list_runs", filter={"product_slug": "pdf", "state": "CREATED"})
    done = asked.call("launch_list_runs", filter={"state": "DONE"})

    assert [run["run_id"] for run in newest["runs"]] == [made[2]]
    assert [run["run_id"] for run in others["runs"]] == [made[1], made[0]]
    assert {run["run_id"] for run in pdf["runs"]} == set(made[:2])
    [run] = done["runs"]
    assert set(run) == {"run_id", "product_slug", "state", "started_at", "finished_at"}
    assert run["run_id"] == story.run_id
    assert run["started_at"] < run["finished_at"]
    assert pdf["runs"][0]["finished_at"] is None
    assert asked.call("launch_list_runs", filter={"product_slug": "none"})["runs"] == []
    assert code(asked.call("launch_list_runs", cursor="x")) == "INVALID_INPUT"


@requirement("e:cancel", "e:code:cancelled")
def test_a_cancelled_run_stays_cancelled_for_every_tool(story: Story) -> None:
    asked = story.client
    run_id = asked.start()

    first = asked.on(run_id, "cancel")
    second = asked.on(run_id, "cancel")

    assert first == {"ok": True, "run_id": run_id, "cancelled": True, "state": "CANCELLED"}
    assert second == first
    for verb in ("validate", "fix_next", "resume", "open_pr"):
        assert code(asked.on(run_id, verb)) == "CANCELLED"


@requirement("e:validate:state", "e:code:illegal-state")
def test_a_run_that_has_no_pages_yet_is_not_validated(story: Story) -> None:
    run_id = story.client.start()

    answer = story.client.on(run_id, "validate")

    assert code(answer) == "ILLEGAL_STATE"
    assert answer["error"]["details"]["allowed"][0] == "LINKING"


TROUBLE = {
    "TOOLCHAIN_MISSING": ("e:code:toolchain", False),
    "ALLOWED_PATHS_VIOLATION": ("e:code:allowed-paths", False),
    "COMMIT_SERVICE_ERROR": ("e:code:commit-service", True),
    "REPO_NOT_FOUND": ("e:accept:retryable", True),
}


@requirement(
    "e:code:toolchain", "e:code:allowed-paths", "e:code:commit-service", "e:accept:retryable"
)
@pytest.mark.parametrize("name", TROUBLE)
def test_what_a_worker_fails_with_is_what_the_caller_is_told(story: Story, name: str) -> None:
    retryable = TROUBLE[name][1]
    fault = {"code": name, "retryable": retryable, "times": 1, "details": {"reason": "test"}}
    story.client.trouble(**{"raise": {"clone": fault}})
    run_id = story.client.start()

    answer = story.client.on(run_id, "resume")

    assert (code(answer), answer["error"]["retryable"]) == (name, retryable)
    assert answer["error"]["details"]["reason"] == "test"
    assert str(story.client.home) not in json.dumps(answer)
    [issue] = story.client.on(run_id, "get_status")["status"]["open_issues"]
    assert issue["severity"] == "blocker"


@requirement("e:code:internal")
def test_a_crash_is_internal_and_names_its_class_and_no_path(story: Story) -> None:
    story.client.trouble(crash={"clone": 1})
    run_id = story.client.start()

    answer = story.client.on(run_id, "resume")

    assert code(answer) == "INTERNAL"
    assert answer["error"]["details"]["cause_class"] == "ZeroDivisionError"
    assert str(story.client.home) not in json.dumps(answer)


@requirement("e:fix:stop", "e:code:fix-exhausted")
def test_a_run_that_has_used_up_its_fixes_fails_and_says_so(story: Story) -> None:
    story.client.trouble(page="BAD1\n")
    run_id = story.client.start(max_fix_attempts=0, drive={"mode": "auto"})
    story.client.on(run_id, "resume")

    answer = story.client.on(run_id, "fix_next")

    assert code(answer) == "FIX_EXHAUSTED"
    assert story.client.on(run_id, "get_status")["status"]["state"] == "FAILED"


@requirement("e:resume")
def test_a_stepwise_run_rests_at_each_stable_boundary(story: Story) -> None:
    story.client.trouble(page="Good.\n")
    run_id = story.client.start()

    states = [story.client.on(run_id, "resume")["status"]["state"] for _ in range(4)]

    assert states == ["PLAN_READY", "DRAFT_READY", "READY_FOR_PR", "READY_FOR_PR"]


@requirement("e:validate:worktree")
def test_without_a_worktree_there_is_nothing_to_validate_or_fix(story: Story) -> None:
    story.client.trouble(page="BAD1\n")
    run_id = story.client.start(drive={"mode": "auto"})
    story.client.on(run_id, "resume")
    folder = story.client.home / f".local/share/cleats/launch/runs/{run_id}"
    (folder / "work/site").rename(folder / "work/gone")

    for verb in ("validate", "fix_next"):
        refused = story.client.on(run_id, verb)["error"]
        assert (refused["code"], refused["details"]["reason"]) == ("ILLEGAL_STATE", "no_worktree")


def test_without_its_source_nothing_is_judged_or_taken_away_and_the_run_stays(
    story: Story,
) -> None:
    story.client.trouble(page="BAD1\n")
    run_id = story.client.start(drive={"mode": "auto"})
    story.client.on(run_id, "resume")
    work = story.client.home / f".local/share/cleats/launch/runs/{run_id}/work"
    (work / "repo").rename(work / "gone")

    for verb in ("validate", "fix_next"):
        refused = story.client.on(run_id, verb)["error"]
        assert (refused["code"], refused["details"]["reason"]) == ("ILLEGAL_STATE", "no_source")
    (work / "gone").rename(work / "repo")

    assert story.client.on(run_id, "fix_next")["ok"]


@pytest.mark.parametrize(("gone", "reason"), [("site", "no_worktree"), ("repo", "no_source")])
def test_a_run_whose_checkout_is_away_waits_for_it_and_goes_on(
    story: Story, gone: str, reason: str
) -> None:
    story.client.trouble()
    run_id = story.client.start(drive={"mode": "stepwise"})
    story.client.on(run_id, "resume")
    work = story.client.home / f".local/share/cleats/launch/runs/{run_id}/work"
    (work / gone).rename(work / "gone")

    refused = story.client.on(run_id, "resume")["error"]
    (work / "gone").rename(work / gone)

    assert (refused["code"], refused["details"]["reason"]) == ("ILLEGAL_STATE", reason)
    assert story.client.on(run_id, "resume")["status"]["state"] == "DRAFT_READY"


def test_a_run_on_storage_that_is_not_mounted_waits_for_it_and_goes_on(story: Story) -> None:
    story.client.trouble()
    run_id = story.client.start(drive={"mode": "stepwise"})
    story.client.on(run_id, "resume")
    runs = story.client.home / ".local/share/cleats/launch/runs"
    runs.rename(runs.with_name("elsewhere"))

    refused = story.client.on(run_id, "resume")["error"]
    rmtree(runs)
    runs.with_name("elsewhere").rename(runs)

    assert (refused["code"], refused["details"]["reason"]) == ("ILLEGAL_STATE", "no_worktree")
    assert "mounting" in refused["details"]["hint"]
    assert story.client.on(run_id, "resume")["status"]["state"] == "DRAFT_READY"


def test_without_a_worktree_there_is_nothing_to_publish_and_the_run_stays(story: Story) -> None:
    story.client.trouble()
    run_id = story.client.start(drive={"mode": "auto"})
    story.client.on(run_id, "resume")
    folder = story.client.home / f".local/share/cleats/launch/runs/{run_id}"
    (folder / "work/site").rename(folder / "work/gone")

    refused = story.client.on(run_id, "open_pr")["error"]

    assert (refused["code"], refused["details"]["reason"]) == ("ILLEGAL_STATE", "no_worktree")
    assert story.client.on(run_id, "get_status")["status"]["state"] == "READY_FOR_PR"


@requirement("e:accept:trace", "e:telemetry:call")
def test_a_run_can_be_followed_from_a_call_to_its_span_and_its_events(tmp_path: Path) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with client(tmp_path) as asked:
        run_id = asked.start()
        asked.peer.call(99, "launch_cancel", {"traceparent": parent}, run_id=run_id)
        asked.peer.answer(99)
        events = asked.events(run_id)
        asked.peer.end_input()
        asked.peer.wait()

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
    given = {"artifact_name": "x", "run_config": {}, "url": "x", "github_repo_url": "x"}
    with client(tmp_path) as asked:
        for tool in TOOLS:
            needs = tool.input.get("required", ())
            asked.call(tool.name, **{name: given.get(name, NOBODY) for name in needs})
        asked.call("launch_start_run_from_url", url="x")
        asked.peer.call("refused", "launch_get_status")
        asked.peer.answer("refused")
        asked.peer.end_input()
        asked.peer.wait()

    seen = [
        (span.attributes["cleats.tool"], span.attributes["cleats.outcome"])
        for span in of_home(tmp_path)
    ]
    failing = [tool.name for tool in TOOLS if tool.name != "launch_list_runs"]
    assert sorted(seen) == sorted(
        [
            *((name, "Failed") for name in [*failing, "launch_start_run_from_url"]),
            ("launch_list_runs", "Done"),
            ("launch_get_status", "Rejected"),
        ]
    )


@requirement("e:telemetry:work-items")
def test_a_worker_that_fails_is_a_work_item_that_failed(story: Story) -> None:
    story.client.trouble(**{"raise": {"facts": {"code": "TOOLCHAIN_MISSING", "times": 1}}})
    run_id = story.client.start()
    story.client.on(run_id, "resume")

    items = [e for e in story.client.events(run_id) if e["type"].startswith("WORK_ITEM_")]

    assert [e["type"].removeprefix("WORK_ITEM_") for e in items] == [
        *("STARTED", "FINISHED", "STARTED", "FINISHED", "STARTED", "FAILED")
    ]
    started, failed = (each["payload"] for each in items[-2:])
    assert started["scope_key"] == "facts"
    assert failed["work_item_id"] == started["work_item_id"]
    assert failed["error"]["code"] == "TOOLCHAIN_MISSING"


def test_a_run_goes_on_in_the_background_to_its_first_decision(tmp_path: Path) -> None:
    with client(tmp_path) as asked:
        run_id = asked.start(drive={"mode": "auto"})

        def state() -> str:
            found: str = asked.on(run_id, "get_status")["status"]["state"]
            return found

        until(lambda: state() == "READY_FOR_PR")


@requirement("e:accept:schemas")
def test_every_tool_tells_its_arguments_its_answer_and_an_example(story: Story) -> None:
    story.client.peer.request("list", "tools/list")
    listed = {tool["name"]: tool for tool in story.client.peer.answer("list")["result"]["tools"]}

    assert len(listed) == 11
    for tool in TOOLS:
        shown = listed[tool.name]
        assert shown["inputSchema"]["additionalProperties"] is False
        assert shown["outputSchema"]["required"] == ["ok"]
        assert len(shown["description"]) > 40
        assert tool.examples


def test_bad_arguments_are_refused_before_anything_runs(story: Story) -> None:
    story.client.peer.call("bad", "launch_get_status", run="x")

    error = story.client.peer.answer("bad")["error"]

    assert error["code"] == -32602
    assert error["data"]["code"] == "INVALID_REQUEST"


# The quickstarts, with repositories that git finds under the addresses of GitHub.

NAMED = "aspose-3d/Aspose.3D-for-Python-via-.NET"
PAGE = "https://products.aspose.org/3d/en/python/"
REGISTRY = f'[[product]]\nfamily = "3d"\nplatform = "python"\nrepo_url = "{GITHUB}/{NAMED}"\n'


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    home = tmp_path_factory.mktemp("quick")
    named = repository(home / "named", {"README.md": "# Aspose.3D\n"})
    vague = repository(home / "vague", {"README.md": "# Aspose.3D and Aspose.Cells\n"})
    half = repository(home / "half", {"pyproject.toml": '[project]\nname = "aspose-3d-foss"\n'})
    env = github(home, {NAMED: named.root, "o/vague": vague.root, "o/half": half.root})
    (home / "registry.toml").write_text(REGISTRY)
    env |= {
        "CLEATS_LAUNCH_REGISTRY": str(home / "registry.toml"),
        "CLEATS_LAUNCH_SITE": f"{GITHUB}/o/site",
    }
    del env["HOME"]
    with client(home, **env) as asked:
        asked.trouble(block={"clone": str(home / "gate")})
        yield asked


@requirement("e:url:start")
def test_a_product_page_alone_starts_a_run(quick: Client) -> None:
    answer = quick.call("launch_start_run_from_product_url", url=PAGE)

    assert (answer["ok"], answer["state"]) == (True, "CREATED")
    assert answer["derived_config"] == {
        "site": "products.aspose.org",
        "product_slug": "3d",
        "platform": "python",
        "locale": "en",
    }
    config = quick.text(answer["run_id"], "run_config.yaml")
    assert f"github_repo_url: {GITHUB}/{NAMED}" in config


@requirement("e:url:alias")
def test_the_old_name_of_the_quickstart_still_works(quick: Client) -> None:
    new = quick.call("launch_start_run_from_product_url", url=PAGE, idempotency_key="old")
    old = quick.call("launch_start_run_from_url", url=PAGE, idempotency_key="old")

    assert old["derived_config"]["product_slug"] == "3d"
    assert (old["run_id"], old["derived_config"]) == (new["run_id"], new["derived_config"])
    alias = TOOLS.alias("launch_start_run_from_url")
    assert alias is not None
    assert alias.deprecated


@requirement("e:url:idempotent")
def test_the_same_key_and_page_give_the_same_run(quick: Client) -> None:
    first = quick.call("launch_start_run_from_product_url", url=PAGE, idempotency_key="page")
    second = quick.call("launch_start_run_from_product_url", url=PAGE, idempotency_key="page")

    assert first["run_id"] == second["run_id"]
    assert first["derived_config"] == second["derived_config"]


@requirement("e:url:invalid", "e:url:unsupported")
def test_an_address_of_no_product_starts_nothing(quick: Client) -> None:
    before = quick.call("launch_list_runs")["runs"]

    wrong = quick.call("launch_start_run_from_product_url", url=PAGE + "more/")
    strange = quick.call("launch_start_run_from_product_url", url="https://example.org/3d/en/go/")

    assert (code(wrong), code(strange)) == ("INVALID_URL", "UNSUPPORTED_SITE")
    assert quick.call("launch_list_runs")["runs"] == before


@requirement("e:url:patterns")
@pytest.mark.parametrize(
    ("url", "site", "locale"),
    [
        ("https://products.aspose.org/3d/de/python/", "products.aspose.org", "de"),
        ("https://docs.aspose.org/3d/en/python/", "docs.aspose.org", "en"),
        ("https://docs.aspose.org/3d/en/python/getting-started/", "docs.aspose.org", "en"),
        ("https://kb.aspose.org/3d/fr/python/how-to-load/", "kb.aspose.org", "fr"),
        ("https://blog.aspose.org/de/3d/python/a-post/", "blog.aspose.org", "de"),
        ("https://blog.aspose.org/3d/python/", "blog.aspose.org", "en"),
        ("https://reference.aspose.org/3d/en/python/", "reference.aspose.org", "en"),
    ],
)
def test_a_page_of_each_site_starts_a_run(quick: Client, url: str, site: str, locale: str) -> None:
    answer = quick.call("launch_start_run_from_product_url", url=url)

    assert answer["ok"]
    assert answer["derived_config"] == {
        "site": site,
        "product_slug": "3d",
        "platform": "python",
        "locale": locale,
    }


def test_a_product_without_a_known_repository_says_what_is_missing(quick: Client) -> None:
    answer = quick.call(
        "launch_start_run_from_product_url", url="https://docs.aspose.org/cells/de/java/"
    )

    assert code(answer) == "INVALID_INPUT"
    assert answer["error"]["details"]["missing_fields"] == ["github_repo_url"]
    assert answer["error"]["details"]["suggested_values"] == {
        "github_repo_url": [f"{GITHUB}/aspose-cells/aspose-cells-foss-java"]
    }


@requirement("e:repo:start", "e:repo:defaults", "e:repo:pinned", "e:repo:idempotent")
def test_a_repository_alone_starts_a_run_and_a_head_that_moves_does_not_start_another(
    quick: Client,
) -> None:
    url = f"{GITHUB}/{NAMED}"
    given = {"github_repo_url": url, "idempotency_key": "repo"}

    first = quick.call("launch_start_run_from_github_repo_url", **given)
    moved = repository(quick.home / "named", {"more.txt": "x"})
    second = quick.call("launch_start_run_from_github_repo_url", **given)
    gone = moved.root.rename(quick.home / "gone")
    third = quick.call("launch_start_run_from_github_repo_url", **given)
    gone.rename(moved.root)

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
    assert derived["github_ref"] == moved.git("rev-parse", "HEAD~1")
    for again in (second, third):
        assert (again["run_id"], again["derived_config"]) == (first["run_id"], derived)


@requirement("e:repo:ambiguous", "e:repo:no-run")
def test_a_repository_that_leaves_doubt_starts_nothing_and_says_what_is_open(
    quick: Client,
) -> None:
    before = quick.call("launch_list_runs")["runs"]

    answer = quick.call(
        "launch_start_run_from_github_repo_url", github_repo_url=f"{GITHUB}/o/vague"
    )

    assert answer["error"]["message"] == "Could not unambiguously infer required fields"
    assert (code(answer), answer["error"]["retryable"]) == ("INVALID_INPUT", False)
    details = answer["error"]["details"]
    assert details["missing_fields"] == ["family", "target_platform"]
    assert details["suggested_values"] == {"family": ["3d", "cells"]}
    assert details["signals"]
    assert quick.call("launch_list_runs")["runs"] == before


@requirement("e:repo:deterministic", "e:repo:signals", "e:repo:threshold")
def test_what_a_repository_shows_is_told_signal_by_signal_and_again_the_same(
    quick: Client,
) -> None:
    given = {"github_repo_url": f"{GITHUB}/o/half"}

    first = quick.call("launch_start_run_from_github_repo_url", **given)
    second = quick.call("launch_start_run_from_github_repo_url", **given)

    details = first["error"]["details"]
    weights = {each["value"]: each["weight"] for each in details["signals"]}
    assert second["error"]["details"] == details
    assert {each["source"] for each in details["signals"]} == {"manifest", "package name"}
    assert details["missing_fields"] == ["family", "target_platform"]
    assert all(0 < weight <= 0.80 for weight in weights.values())


@requirement("e:repo:not-found", "e:repo:invalid-url")
def test_a_repository_that_is_not_there_or_none_is_told_apart(quick: Client) -> None:
    gone = quick.call("launch_start_run_from_github_repo_url", github_repo_url=f"{GITHUB}/o/gone")
    wrong = quick.call("launch_start_run_from_github_repo_url", github_repo_url="https://x.org/o/n")

    assert (code(gone), code(wrong)) == ("REPO_NOT_FOUND", "INVALID_URL")
    assert str(quick.home) not in json.dumps(gone)
