"""Tests of the run engine: the course of a run, what stops it, and what it leaves behind."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drive.engine import RunEngine
from cleats.toolsets.launch.drive.leases import MAX_CONCURRENT_RUNS, BackgroundDriver
from cleats.toolsets.launch.drive.pipeline import find_publication_work
from cleats.toolsets.launch.drive.run_driver import PATCH_CONFLICT_CODE, Caller
from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.runs.events import TraceIds
from cleats.toolsets.launch.runs.job import ProgressCallback, StepResult, WorkerJob, WorkerLauncher
from cleats.toolsets.launch.runs.snapshot import replay_events
from cleats.toolsets.launch.runs.states import STATE_ORDER, TERMINAL_STATES, RunState
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.store.model import Run
from cleats.toolsets.launch.store.run_files import render_view
from tests.support.launch_runs import (
    TEST_PACE,
    InlineWorkers,
    build_config,
    create_engine,
    create_job,
    create_run,
    record_states,
)
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement
from tests.support.servers.launch_worker import PAGE_PATH

pytestmark = pytest.mark.anyio

BAD_PAGE = {"page": "one BAD1 two BAD2\n"}


@pytest.fixture
def runs(tmp_path: Path) -> RunEngine:
    return create_engine(tmp_path, inline=True)


def list_states(engine: RunEngine, run: Run) -> list[str]:
    """Return every state that the log records."""
    events = engine.store.list_events(run.run_id)
    return [event.payload["new_state"] for event in events if event.type == "RUN_STATE_CHANGED"]


def list_event_types(engine: RunEngine, run: Run) -> list[str]:
    return [event.type for event in engine.store.list_events(run.run_id)]


def list_recorded_steps(engine: RunEngine, run: Run) -> list[str]:
    return [step.step for step in engine.store.list_steps(run.run_id)]


async def catch_tool_error(work: Any) -> ToolError:
    with pytest.raises(ToolError) as error:
        await work
    return error.value


async def test_a_run_goes_all_the_way_in_real_processes(tmp_path: Path) -> None:
    runs = create_engine(tmp_path)
    run = await create_run(runs, build_config(drive={"auto_fix": True, "auto_pr": True}, test=BAD_PAGE))
    messages: list[str] = []

    status = await runs.resume(
        run.run_id, Caller(TraceIds("7" * 32, "8" * 16), lambda message, *_: messages.append(message))
    )

    assert status["state"] == "DONE"
    assert status["section_states"] == {"docs": "DONE"}
    assert status["open_issues"] == []
    assert list_recorded_steps(runs, run) == [
        *("clone", "inventory", "facts", "snippets", "plan", "draft:docs", "link", "apply"),
        *("validate:1", "fix:1", "apply:fix:1", "validate:2", "fix:2", "apply:fix:2"),
        *("validate:3", "commit", "request"),
    ]
    assert list_states(runs, run) == [
        *("CLONED_INPUTS", "INGESTED", "FACTS_READY", "PLAN_READY", "DRAFTING", "DRAFT_READY"),
        *("LINKING", "VALIDATING", "FIXING", "VALIDATING", "FIXING", "VALIDATING"),
        *("READY_FOR_PR", "PR_OPENED", "DONE"),
    ]
    assert "W1 clone" in messages
    assert "at clone" in messages
    events = runs.store.list_events(run.run_id)
    assert {event.trace.trace_id for event in events[1:]} == {"7" * 32}
    assert runs.store.verify(run.run_id)
    assert replay_events(run.run_id, events) == runs.store.get_snapshot(run.run_id)


@requirement("e:telemetry:work-items")
async def test_a_step_leaves_work_items_artifacts_and_gates_in_the_log(runs: RunEngine) -> None:
    run = await create_run(runs, build_config(test=BAD_PAGE))
    await runs.resume(run.run_id)

    event_types = list_event_types(runs, run)
    items = runs.store.get_snapshot(run.run_id)["work_items"]

    assert event_types[:6] == [
        *("RUN_CREATED", "WORK_ITEM_STARTED", "ARTIFACT_WRITTEN", "INPUTS_CLONED"),
        *("WORK_ITEM_FINISHED", "RUN_STATE_CHANGED"),
    ]
    assert event_types[-8:] == [
        *("WORK_ITEM_STARTED", "GATE_RUN_STARTED", "GATE_RUN_FINISHED", "ARTIFACT_WRITTEN"),
        *("ISSUE_OPENED", "ISSUE_OPENED", "SECTION_STATE_CHANGED", "WORK_ITEM_FINISHED"),
    ]
    assert items[0]["work_item_id"] == f"{run.run_id}:W1:1:clone"
    assert {item["status"] for item in items} == {"finished"}
    assert artifacts.find_faults("snapshot", runs.store.get_snapshot(run.run_id)) == []


@requirement("e:resume")
async def test_a_stepwise_run_moves_only_when_it_is_told_and_rests_at_each_boundary(
    runs: RunEngine,
) -> None:
    run = await create_run(runs, build_config("stepwise", test=BAD_PAGE))

    async with runs.running():
        assert not runs.drive_in_background(run)
    rest_states = [(await runs.resume(run.run_id))["state"] for _ in range(4)]

    assert rest_states == ["PLAN_READY", "DRAFT_READY", "VALIDATING", "VALIDATING"]
    assert list_recorded_steps(runs, run)[-1] == "validate:1"


async def test_a_good_run_rests_before_its_request_and_resume_leaves_it_there(
    runs: RunEngine,
) -> None:
    run = await create_run(runs, build_config())

    first = await runs.resume(run.run_id)
    count = len(runs.store.list_events(run.run_id))
    second = await runs.resume(run.run_id)

    assert first == second
    assert first["state"] == "READY_FOR_PR"
    assert len(runs.store.list_events(run.run_id)) == count


@requirement("e:fix")
async def test_fixes_take_one_issue_each_until_nothing_is_wrong(runs: RunEngine) -> None:
    run = await create_run(runs, build_config(test=BAD_PAGE))
    await runs.resume(run.run_id)
    first = runs.store.get_snapshot(run.run_id)["issues"]

    one = await runs.fix_next(run.run_id)
    two = await runs.fix_next(run.run_id)

    assert [one["fixed_issue_id"], two["fixed_issue_id"]] == [issue["issue_id"] for issue in first]
    assert one["applied_patch_ids"] == ["patch_BAD1"]
    assert (one["remaining_blockers"], two["remaining_blockers"]) == (1, 0)
    assert two["validation_report"]["ok"]
    assert runs.store.get(run.run_id).state is RunState.READY_FOR_PR
    assert "ISSUE_RESOLVED" in list_event_types(runs, run)


async def test_a_rule_that_finds_nothing_to_change_counts_and_the_next_issue_has_its_turn(
    runs: RunEngine,
) -> None:
    run = await create_run(runs, build_config(test={"page": "BAD8 BAD1 BAD9"}))
    await runs.resume(run.run_id)

    empty_fix = await runs.fix_next(run.run_id)
    something = await runs.fix_next(run.run_id)
    error = await catch_tool_error(runs.fix_next(run.run_id))

    assert (empty_fix["fixed_issue_id"], empty_fix["applied_patch_ids"]) == (None, [])
    assert empty_fix["remaining_blockers"] == 3
    assert something["fixed_issue_id"] is not None
    assert error.code is ErrorCode.FIX_EXHAUSTED
    assert error.details == {"reason": "no_fixable_issue"}
    assert runs.store.get(run.run_id).state is RunState.VALIDATING
    assert "validate:3" not in list_recorded_steps(runs, run)


@requirement("e:fix:stop", "e:code:fix-exhausted")
async def test_a_run_at_the_cap_fails(runs: RunEngine) -> None:
    run = await create_run(runs, build_config(max_fix_attempts=1, test=BAD_PAGE))
    await runs.resume(run.run_id)
    await runs.fix_next(run.run_id)

    error = await catch_tool_error(runs.fix_next(run.run_id))

    assert error.code is ErrorCode.FIX_EXHAUSTED
    assert error.details == {"reason": "max_fix_attempts", "max_fix_attempts": 1}
    assert runs.store.get(run.run_id).state is RunState.FAILED
    assert list_event_types(runs, run)[-2:] == ["RUN_FAILED", "RUN_STATE_CHANGED"]


async def test_a_fix_that_opens_a_blocker_in_another_gate_ends_the_run(runs: RunEngine) -> None:
    run = await create_run(runs, build_config(test={"page": "BAD7 BAD1"}))
    await runs.resume(run.run_id)

    fix_result = await runs.fix_next(run.run_id)
    error = await catch_tool_error(runs.fix_next(run.run_id))

    assert (fix_result["applied_patch_ids"], fix_result["remaining_blockers"]) == (["patch_BAD7"], 2)
    assert not fix_result["validation_report"]["ok"]
    assert error.code is ErrorCode.ILLEGAL_STATE
    *_, failure_event, state_event = runs.store.list_events(run.run_id)
    assert failure_event.type == "RUN_FAILED"
    assert failure_event.payload["error"] == {
        "code": "GATE_FAILED",
        "message": f"the fix of {fix_result['fixed_issue_id']} caused a blocker in style: WORSE",
        "retryable": False,
    }
    assert state_event.payload == {"old_state": "VALIDATING", "new_state": "FAILED"}


async def test_fixing_by_itself_stops_at_a_fix_that_opens_a_blocker_in_another_gate(
    runs: RunEngine,
) -> None:
    page = {"page": "BAD7 BAD1"}
    run = await create_run(runs, build_config(drive={"auto_fix": True, "auto_pr": True}, test=page))

    status = await runs.resume(run.run_id)

    assert status["state"] == "FAILED"
    assert [issue["title"] for issue in status["open_issues"]] == ["WORSE", "BAD1"]
    assert list_recorded_steps(runs, run)[-2:] == ["apply:fix:1", "validate:2"]


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param({"page": "BAD7 WORSE1"}, id="the gate was blocked before"),
        pytest.param({"page": "BAD7", "edited": [PAGE_PATH]}, id="somebody edited the file"),
        pytest.param({"page": "BAD7", "where": ""}, id="it is nowhere in particular"),
    ],
)
async def test_a_blocker_that_may_not_be_the_doing_of_a_fix_does_not_end_the_run(
    runs: RunEngine, trouble: dict[str, Any]
) -> None:
    run = await create_run(runs, build_config(test=trouble))
    await runs.resume(run.run_id)

    fix_result = await runs.fix_next(run.run_id)

    assert not fix_result["validation_report"]["ok"]
    assert runs.store.get(run.run_id).state is RunState.VALIDATING


async def test_a_blocker_that_the_run_has_had_before_may_come_back(runs: RunEngine, tmp_path: Path) -> None:
    run = await create_run(runs, build_config(test={"page": "WORSE"}))
    await runs.resume(run.run_id)
    page = RunFolder(tmp_path / "runs" / run.run_id).site / PAGE_PATH
    page.write_text("BAD7")
    await runs.validate(run.run_id)

    fix_result = await runs.fix_next(run.run_id)

    assert [issue["message"] for issue in fix_result["validation_report"]["issues"]] == ["WORSE"]
    assert runs.store.get(run.run_id).state is RunState.VALIDATING


async def test_fixing_by_itself_ends_at_the_cap_and_leaves_the_run_to_be_looked_at(
    runs: RunEngine,
) -> None:
    run = await create_run(runs, build_config(max_fix_attempts=1, drive={"auto_fix": True}, test=BAD_PAGE))

    status = await runs.resume(run.run_id)

    assert status["state"] == "VALIDATING"
    assert len(status["open_issues"]) == 1


async def test_a_later_look_can_find_something_and_takes_the_run_back(runs: RunEngine, tmp_path: Path) -> None:
    run = await create_run(runs, build_config())
    await runs.resume(run.run_id)
    page = RunFolder(tmp_path / "runs" / run.run_id).site / PAGE_PATH

    good = await runs.validate(run.run_id)
    page.write_text("BAD1")
    bad = await runs.validate(run.run_id)
    resting_status = await runs.resume(run.run_id)
    await runs.fix_next(run.run_id)

    assert (good["ok"], bad["ok"]) == (True, False)
    assert resting_status["state"] == "VALIDATING"
    assert list_states(runs, run)[-4:] == ["VALIDATING", "FIXING", "VALIDATING", "READY_FOR_PR"]


@requirement("e:pr")
async def test_a_request_is_opened_once_and_names_branch_and_commit(runs: RunEngine) -> None:
    run = await create_run(runs, build_config())
    await runs.resume(run.run_id)

    pull_request = await runs.open_pr(run.run_id)
    again = await catch_tool_error(runs.open_pr(run.run_id))

    assert pull_request.keys() == {"pr_url", "branch", "commit_sha"}
    assert pull_request["branch"] == f"launch/{run.run_id}/x"
    assert again.code is ErrorCode.ILLEGAL_STATE
    assert list_states(runs, run)[-2:] == ["PR_OPENED", "DONE"]
    assert list_event_types(runs, run)[-2:] == ["RUN_COMPLETED", "RUN_STATE_CHANGED"]
    assert runs.store.get(run.run_id).finished_at


async def test_what_changed_after_a_commit_is_committed_anew(runs: RunEngine, tmp_path: Path) -> None:
    fault = {"request": {"times": 1, "code": "COMMIT_SERVICE_ERROR"}}
    run = await create_run(runs, build_config(test={"raise": fault}))
    await runs.resume(run.run_id)

    error = await catch_tool_error(runs.open_pr(run.run_id))
    (RunFolder(tmp_path / "runs" / run.run_id).site / PAGE_PATH).write_text("Better, by hand.")
    await runs.validate(run.run_id)
    await runs.open_pr(run.run_id)

    assert error.code is ErrorCode.COMMIT_SERVICE_ERROR
    assert list_recorded_steps(runs, run)[-5:] == ["validate:1", "commit", "validate:2", "commit:2", "request"]


async def test_a_finished_run_can_be_looked_at_and_stays_as_it_is(runs: RunEngine, tmp_path: Path) -> None:
    run = await create_run(runs, build_config(drive={"auto_pr": True}))
    await runs.resume(run.run_id)
    (RunFolder(tmp_path / "runs" / run.run_id).site / PAGE_PATH).write_text("BAD1")

    report = await runs.validate(run.run_id)

    assert not report["ok"]
    assert runs.store.get(run.run_id).state is RunState.DONE
    assert (await runs.get_status(run.run_id))["section_states"] == {"docs": "DONE"}


async def test_a_step_that_may_work_later_leaves_the_run_where_it_is(runs: RunEngine) -> None:
    fault = {"facts": {"times": 1, "code": "INTERNAL", "retryable": True}}
    run = await create_run(runs, build_config(test={"raise": fault}))

    error = await catch_tool_error(runs.resume(run.run_id))
    between = await runs.get_status(run.run_id)
    after = await runs.resume(run.run_id)

    assert error.retryable
    assert between["state"] == "INGESTED"
    assert [(issue["gate"], issue["severity"]) for issue in between["open_issues"]] == [("W2", "blocker")]
    assert str(runs.runs) not in json.dumps(between)
    assert after["state"] == "READY_FOR_PR"
    assert after["open_issues"] == []
    attempts = [
        (item["attempt"], item["status"])
        for item in runs.store.get_snapshot(run.run_id)["work_items"]
        if item["scope_key"] == "facts"
    ]
    assert attempts == [(1, "failed"), (2, "finished")]


@pytest.mark.parametrize(
    ("step", "code", "state"),
    [
        ("plan", "INTERNAL", RunState.FAILED),
        ("apply", "ALLOWED_PATHS_VIOLATION", RunState.FAILED),
        ("validate:1", "TOOLCHAIN_MISSING", RunState.VALIDATING),
        ("commit", "COMMIT_SERVICE_ERROR", RunState.READY_FOR_PR),
        ("commit", "ILLEGAL_STATE", RunState.READY_FOR_PR),
    ],
)
async def test_what_cannot_work_ends_the_run_unless_somebody_can_put_it_right(
    runs: RunEngine, step: str, code: str, state: RunState
) -> None:
    fault = {step: {"code": code, "retryable": False}}
    run = await create_run(runs, build_config(drive={"auto_pr": True}, test={"raise": fault}))

    error = await catch_tool_error(runs.resume(run.run_id))

    assert error.code is ErrorCode[code]
    assert runs.store.get(run.run_id).state is state
    assert bool(runs.store.get_snapshot(run.run_id)["issues"]) == (code != "ILLEGAL_STATE")


async def test_a_step_that_fails_leaves_what_says_why_and_nothing_else(tmp_path: Path) -> None:
    runs = create_engine(tmp_path)
    fault = {"code": "INVALID_INPUT", "leaves": {"why.json": {"line": 3}}}
    run = await create_run(runs, build_config(test={"raise": {"clone": fault}}))

    await catch_tool_error(runs.resume(run.run_id))

    artifacts_index = runs.store.get_snapshot(run.run_id)["artifacts_index"]
    folder = RunFolder(tmp_path / "runs" / run.run_id)
    assert list(artifacts_index) == ["why.json"]
    assert json.loads(folder.get_object(artifacts_index["why.json"]["sha256"])) == {"line": 3}
    assert runs.store.get(run.run_id).state is RunState.FAILED


async def test_crashes_and_kills_of_a_worker_are_told_apart(tmp_path: Path) -> None:
    runs = create_engine(tmp_path)
    crashing = await create_run(runs, build_config(test={"crash": {"clone": 1}}))
    dying = await create_run(runs, build_config("stepwise", test={"kill": {"clone": 1}}))

    crash = await catch_tool_error(runs.resume(crashing.run_id))
    kill = await catch_tool_error(runs.resume(dying.run_id))

    assert crash.code is kill.code is ErrorCode.INTERNAL
    assert crash.details == {"cause_class": "ZeroDivisionError"}
    assert kill.details == {"cause_class": "WorkerKilled"}
    assert str(tmp_path) not in crash.message
    assert runs.store.get(crashing.run_id).state is RunState.FAILED
    assert runs.store.get(dying.run_id).state is RunState.CREATED
    assert (await runs.resume(dying.run_id))["state"] == "PLAN_READY"


async def test_a_worker_takes_no_module_from_the_folder_that_the_server_runs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asyncio.py").write_text("raise SystemExit('a stranger')")
    monkeypatch.chdir(tmp_path)
    runs = create_engine(tmp_path)
    run = await create_run(runs, build_config(test={"raise": {"clone": {"code": "REPO_NOT_FOUND"}}}))

    error = await catch_tool_error(runs.resume(run.run_id))

    assert error.code is ErrorCode.REPO_NOT_FOUND


async def test_patches_that_do_not_fit_any_more_are_planned_anew(runs: RunEngine, tmp_path: Path) -> None:
    conflict = {"times": 1, "code": "INVALID_INPUT", "details": {"error_code": PATCH_CONFLICT_CODE}}
    run = await create_run(runs, build_config(test={**BAD_PAGE, "raise": {"apply": conflict}}))

    status = await runs.resume(run.run_id)

    assert status["state"] == "VALIDATING"
    assert list_recorded_steps(runs, run)[6:10] == ["link", "rewind:1", "link:2", "apply:2"]
    (rewind,) = [e for e in runs.store.list_events(run.run_id) if e.type == "RESUME_REWIND"]
    assert (rewind.payload["from_state"], rewind.payload["to_state"]) == ("LINKING", "DRAFT_READY")


async def test_a_fix_that_does_not_fit_any_more_is_dropped_and_the_worktree_looked_at(
    runs: RunEngine,
) -> None:
    conflict = {"times": 1, "code": "INVALID_INPUT", "details": {"error_code": PATCH_CONFLICT_CODE}}
    run = await create_run(runs, build_config(test={**BAD_PAGE, "raise": {"apply:fix:1": conflict}}))
    await runs.resume(run.run_id)

    dropped = await runs.fix_next(run.run_id)
    second = await runs.fix_next(run.run_id)

    assert (dropped["fixed_issue_id"], dropped["applied_patch_ids"]) == (None, [])
    assert second["applied_patch_ids"] == ["patch_BAD2"]
    assert list_recorded_steps(runs, run)[9:] == [
        *("fix:1", "rewind:1", "validate:2", "fix:2", "apply:fix:2", "validate:3"),
    ]


@pytest.mark.parametrize(("budgets", "attempts"), [({}, 5), ({"max_patch_attempts": 2}, 2)])
async def test_a_worktree_that_never_fits_ends_the_run(runs: RunEngine, budgets: dict[str, int], attempts: int) -> None:
    fault = {"code": "INVALID_INPUT", "details": {"error_code": PATCH_CONFLICT_CODE}}
    faults = dict.fromkeys(["apply", *(f"apply:{number}" for number in range(2, 9))], fault)
    run = await create_run(runs, build_config(test={"raise": faults}, budgets=budgets))

    error = await catch_tool_error(runs.resume(run.run_id))

    assert error.code is ErrorCode.INVALID_INPUT
    assert sum(step.startswith("link") for step in list_recorded_steps(runs, run)) == attempts
    assert runs.store.get(run.run_id).state is RunState.FAILED


async def test_a_run_may_not_take_longer_than_its_budget(tmp_path: Path) -> None:
    runs = create_engine(tmp_path)
    gate = tmp_path / "gate"
    test = {"block": {"inventory": str(gate)}}
    run = await create_run(runs, build_config(budgets={"max_runtime_s": 3}, test=test))

    error = await catch_tool_error(runs.resume(run.run_id))

    assert error.code is ErrorCode.TOOL_TIMEOUT
    assert error.details == {"budget": "max_runtime_s", "limit": 3}
    assert runs.store.get(run.run_id).state is RunState.FAILED


async def test_a_run_with_a_changed_log_is_not_driven(runs: RunEngine) -> None:
    run = await create_run(runs, build_config("stepwise"))
    await runs.resume(run.run_id)
    runs.store._writer.execute("UPDATE events SET payload = '{}' WHERE seq = 1")

    error = await catch_tool_error(runs.resume(run.run_id))

    assert error.code is ErrorCode.INTERNAL
    assert error.details["reason"] == "EVENT_CHAIN_BROKEN"
    assert runs.store.get(run.run_id).state is RunState.PLAN_READY
    assert (await runs.get_status(run.run_id))["state"] == "PLAN_READY"


async def test_a_damaged_artifact_is_noticed_when_it_is_read(runs: RunEngine, tmp_path: Path) -> None:
    run = await create_run(runs, build_config("stepwise"))
    await runs.resume(run.run_id)
    await runs.resume(run.run_id)
    folder = RunFolder(tmp_path / "runs" / run.run_id)
    index = runs.store.get_snapshot(run.run_id)["artifacts_index"]
    (folder.objects / index["drafts/docs/index.md"]["sha256"]).write_text("something else")

    error = await catch_tool_error(runs.resume(run.run_id))

    assert error.details["cause_class"] == "ObjectChanged"


async def test_at_a_boundary_the_run_can_be_read_as_files(runs: RunEngine, tmp_path: Path) -> None:
    run = await create_run(runs, build_config(test=BAD_PAGE))
    await runs.resume(run.run_id)
    folder = tmp_path / "runs" / run.run_id

    lines = (folder / "events.ndjson").read_text().splitlines()
    snapshot = json.loads((folder / "snapshot.json").read_text())

    assert [json.loads(line) for line in lines] == [event.as_json() for event in runs.store.list_events(run.run_id)]
    assert all(artifacts.find_faults("event", json.loads(line)) == [] for line in lines)
    assert snapshot == runs.store.get_snapshot(run.run_id)
    assert (folder / "artifacts" / "drafts" / "docs" / "index.md").read_text() == BAD_PAGE["page"]
    assert "product_slug: zip" in (folder / "run_config.yaml").read_text()
    stored_run = runs.store.get(run.run_id)
    assert render_view(runs.store, stored_run, "snapshot.json") == (folder / "snapshot.json").read_bytes()


async def test_a_started_run_goes_on_in_the_background_and_a_resume_waits_for_it(
    tmp_path: Path,
) -> None:
    runs = create_engine(tmp_path, inline=True)
    run = await create_run(runs, build_config(test=BAD_PAGE))

    async with runs.running():
        assert runs.drive_in_background(run)
        status = await runs.resume(run.run_id)

    assert status["state"] == "VALIDATING"
    assert len(set(list_recorded_steps(runs, run))) == len(list_recorded_steps(runs, run))


async def test_a_resume_that_waits_for_another_driver_tells_where_that_one_ended(
    tmp_path: Path,
) -> None:
    runs = create_engine(tmp_path, inline=True)
    reached, go = anyio.Event(), anyio.Event()

    class GatedInline(InlineWorkers):
        async def run(self, kind: str, job: WorkerJob, report_progress: ProgressCallback) -> StepResult:
            reached.set()
            await go.wait()
            return await super().run(kind, job, report_progress)

    runs._resources = replace(runs._resources, workers=GatedInline({}, None, 0.2))
    run = await create_run(runs, build_config(drive={"auto_pr": True}))
    final_states: list[str] = []

    async def resume_run() -> None:
        final_states.append((await runs.resume(run.run_id))["state"])

    async with runs.running():
        runs.drive_in_background(run)
        with anyio.fail_after(60), record_states(runs.store) as lookups:
            await reached.wait()
            lookups.clear()
            async with anyio.create_task_group() as group:
                group.start_soon(resume_run)
                while not lookups:
                    await anyio.sleep(0.01)
                go.set()

    assert final_states == ["DONE"]


async def test_only_so_many_runs_go_on_at_once_and_each_only_once() -> None:
    background = BackgroundDriver()
    started_runs: list[str] = []
    go = anyio.Event()

    async def drive_run(name: str) -> None:
        started_runs.append(name)
        await go.wait()

    async with background.running():
        for name in "abcdefa":
            assert background.start(name, partial(drive_run, name))
        with anyio.fail_after(60):
            while len(started_runs) < MAX_CONCURRENT_RUNS:
                await anyio.sleep(0)  # noqa: ASYNC115 - a turn of the loop for the tasks
            at_first = list(started_runs)
            go.set()
            while len(started_runs) < 6:
                await anyio.sleep(0)  # noqa: ASYNC115

    assert at_first == ["a", "b", "c", "d"]
    assert started_runs == ["a", "b", "c", "d", "e", "f"]


async def test_a_server_that_stops_lets_go_of_its_runs_at_once(tmp_path: Path) -> None:
    runs = create_engine(tmp_path)
    gate = tmp_path / "gate"
    run = await create_run(runs, build_config(test={"block": {"clone": str(gate)}}))

    async with runs.running():
        runs.drive_in_background(run)
        with anyio.fail_after(60):
            while not gate.exists():
                await anyio.sleep(0.01)

    stored_run = runs.store.get(run.run_id)
    assert (stored_run.owner, stored_run.state) == ("", RunState.CREATED)
    assert not runs.drive_in_background(run)


@requirement("e:resume", "e:accept:retryable")
async def test_a_run_that_fails_during_a_resume_answers_the_failure_whoever_did_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = create_engine(tmp_path)
    gate = tmp_path / "gate"
    fault = {"inventory": {"code": "REPO_NOT_FOUND", "retryable": False, "details": {"field": "github_repo_url"}}}
    waiting = await create_run(runs, build_config(test={"raise": fault, "block": {"clone": str(gate)}}))
    driving = await create_run(runs, build_config(test={"raise": fault}))
    get_run, seen_states = runs.store.get, []

    def note_state(run_id: str) -> Run:
        run = get_run(run_id)
        if run_id == waiting.run_id:
            seen_states.append(run.state)
        return run

    async def release_step() -> None:
        while len(seen_states) < 2:
            await anyio.sleep(0.01)
        gate.unlink()

    own_error = await catch_tool_error(runs.resume(driving.run_id))
    async with runs.running(), anyio.create_task_group() as tasks:
        runs.drive_in_background(waiting)
        with anyio.fail_after(60):
            while not gate.exists():
                await anyio.sleep(0.01)
            monkeypatch.setattr(runs.store, "get", note_state)
            tasks.start_soon(release_step)
            waited_error = await catch_tool_error(runs.resume(waiting.run_id))

    assert seen_states[:2] == [RunState.CREATED, RunState.CREATED]
    assert waited_error.as_json() == own_error.as_json()
    assert (waited_error.code, waited_error.retryable) == (ErrorCode.REPO_NOT_FOUND, False)
    assert waited_error.details == {"field": "github_repo_url"}


EngineTool = Callable[[RunEngine, str], Any]

ENGINE_TOOLS: dict[str, EngineTool] = {
    "validate": lambda engine, run_id: engine.validate(run_id),
    "fix_next": lambda engine, run_id: engine.fix_next(run_id),
    "resume": lambda engine, run_id: engine.resume(run_id),
    "open_pr": lambda engine, run_id: engine.open_pr(run_id),
    "cancel": lambda engine, run_id: engine.cancel(run_id),
}

ALLOWED_STATES: dict[str, set[RunState]] = {
    "validate": set(STATE_ORDER[STATE_ORDER.index(RunState.LINKING) :]),
    "fix_next": {RunState.VALIDATING},
    "resume": set(RunState) - TERMINAL_STATES,
    "open_pr": {RunState.READY_FOR_PR},
    "cancel": set(RunState) - {RunState.DONE, RunState.FAILED},
}


async def start_run_at(runs: RunEngine, state: RunState) -> Run:
    """Start a run and bring it to a state, at rest or as if its driver had been lost there."""
    page = "BAD1" if state in {RunState.VALIDATING, RunState.FIXING} else "Good."
    run = await create_run(runs, build_config("stepwise", test={"page": page}))
    is_resting = state is RunState.VALIDATING
    async with runs._open_driver(run.run_id, lambda _run: None, Caller()) as run_driver:
        if state is RunState.FAILED:
            await run_driver.enter_state(RunState.FAILED)
        elif state is RunState.CANCELLED:
            await run_driver.enter_state(RunState.CANCELLED)
        else:
            await run_driver.advance(lambda view: view.state is state and not is_resting)
        if state is RunState.FIXING:
            await run_driver.enter_state(RunState.FIXING)
        if state in {RunState.PR_OPENED, RunState.DONE}:
            while (work := find_publication_work(run_driver.view)) is not None:
                await run_driver.run_step(work)
            await run_driver.advance(lambda view: view.state is state)
    return run


@requirement("e:code:illegal-state", "e:code:cancelled")
@pytest.mark.parametrize("state", list(RunState))
async def test_every_tool_keeps_to_its_states(tmp_path: Path, state: RunState) -> None:
    for name, tool in ENGINE_TOOLS.items():
        runs = create_engine(tmp_path / name, inline=True, pace=TEST_PACE)
        run = await start_run_at(runs, state)
        assert runs.store.get(run.run_id).state is state
        if state in ALLOWED_STATES[name]:
            await tool(runs, run.run_id)
        else:
            error = await catch_tool_error(tool(runs, run.run_id))
            is_cancelled = state is RunState.CANCELLED
            assert error.code is (ErrorCode.CANCELLED if is_cancelled else ErrorCode.ILLEGAL_STATE)
            assert runs.store.get(run.run_id).state is state
            assert error.details["state"] == state.value


async def test_without_a_worktree_nothing_is_validated(runs: RunEngine, tmp_path: Path) -> None:
    run = await create_run(runs, build_config())
    await runs.resume(run.run_id)
    site = RunFolder(tmp_path / "runs" / run.run_id).site
    site.rename(site.with_name("elsewhere"))

    error = await catch_tool_error(runs.validate(run.run_id))

    assert error.code is ErrorCode.ILLEGAL_STATE
    assert "worktree" in error.message


async def test_an_interrupted_state_is_finished_before_it_is_validated(runs: RunEngine, tmp_path: Path) -> None:
    linking = await start_run_at(runs, RunState.LINKING)
    fixing = await start_run_at(runs, RunState.FIXING)

    assert (await runs.validate(linking.run_id))["ok"]
    assert (await runs.validate(fixing.run_id))["ok"]

    assert list_recorded_steps(runs, linking)[-3:] == ["link", "apply", "validate:1"]
    assert list_recorded_steps(runs, fixing)[-3:] == ["fix:1", "apply:fix:1", "validate:2"]


async def test_what_a_worker_hands_back_holds_none_of_its_secrets(tmp_path: Path) -> None:
    fault = {"code": "COMMIT_SERVICE_ERROR", "details": {"said": 'no pass"word for you'}}
    order = create_job(
        tmp_path,
        step="commit",
        config={"test": {"raise": {"commit": fault}}},
        secrets={"TOKEN": 'pass"word', "SHORT": "for"},
    )
    order.write("said.txt", 'A pass"word.\n')
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY_ROOT)}
    workers = WorkerLauncher({"commit": "tests.support.servers.launch_worker:run"}, env, 0.2)

    error = await catch_tool_error(workers.run("commit", order, lambda *_said: None))

    assert error.details == {"said": "no (a secret) for you"}
    assert order.read("said.txt") == b"A (a secret).\n"
