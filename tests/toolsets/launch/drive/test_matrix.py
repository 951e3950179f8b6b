"""Tests of every tool in every state: its answer follows from its preconditions.

The store, the engine and the tools are the real ones. A worker that is reached raises an error and
does nothing else, so that a cell costs one process at most.
"""

from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.outcome import Outcome
from cleats.contract.payload import LAUNCH, AnswerMeta
from cleats.contract.registry import Registry
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.telemetry import CallTelemetry
from cleats.settings import Settings
from cleats.toolsets.launch.drive.engine import RunEngine
from cleats.toolsets.launch.drive.pipeline import STEP_KINDS
from cleats.toolsets.launch.runs.events import EventDraft, TraceIds
from cleats.toolsets.launch.runs.states import STATE_ORDER, TERMINAL_STATES, RunState
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.service import LaunchService
from cleats.toolsets.launch.store.model import RecordedStep, RunLease, make_state_event
from cleats.toolsets.launch.tools import build_service_toolset
from tests.support.launch_runs import build_config, create_engine, create_run
from tests.support.requirements import requirement

REACHED_CODE = "TOOLCHAIN_MISSING"
"""The error code that only the worker of these tests raises."""

REACHED_TROUBLE = {
    "raise": {
        step: {"code": REACHED_CODE}
        for kind in STEP_KINDS
        for step in (kind, f"{kind}:1", f"{kind}:2", f"{kind}:3", f"{kind}:docs")
    }
}

MOVING_TOOLS = ("validate", "fix_next", "resume", "cancel", "open_pr")
READING_TOOLS = ("get_status", "get_artifact")
VALIDATED_STATES = {
    RunState.LINKING,
    RunState.VALIDATING,
    RunState.FIXING,
    RunState.READY_FOR_PR,
    RunState.PR_OPENED,
    RunState.DONE,
}
RESTING_STATES = {RunState.VALIDATING, RunState.READY_FOR_PR}
"""The states in which a run waits for a decision, so that resuming changes nothing."""


def find_expected_code(tool: str, state: RunState) -> str:
    """Return the expected code: `ok`, an error code, or `REACHED_CODE` where a worker starts."""
    if tool in READING_TOOLS:
        return "ok"
    if tool == "cancel":
        return "ILLEGAL_STATE" if state in {RunState.DONE, RunState.FAILED} else "ok"
    if state is RunState.CANCELLED:
        return "CANCELLED"
    allowed_states = {
        "validate": VALIDATED_STATES,
        "fix_next": {RunState.VALIDATING},
        "resume": set(RunState) - TERMINAL_STATES,
        "open_pr": {RunState.READY_FOR_PR},
    }[tool]
    if state not in allowed_states:
        return "ILLEGAL_STATE"
    is_finished = tool == "resume" and state in {*RESTING_STATES, RunState.PR_OPENED}
    return "ok" if is_finished else REACHED_CODE


class ToolMatrix:
    """An engine, and the tools over it."""

    def __init__(self, tmp_path: Path) -> None:
        self.engine = create_engine(tmp_path)
        self.trouble: dict[str, Any] = REACHED_TROUBLE
        fixed_engine = self.engine

        class FixedLaunches(LaunchService):
            @cached_property
            def engine(self) -> RunEngine:
                return fixed_engine

        self._dispatcher = Dispatcher(
            Registry([build_service_toolset(FixedLaunches(Settings()))]),
            concurrency=4,
            queue=0,
            telemetry=CallTelemetry(log_calls=False),
        )

    async def start_run_at(self, state: RunState) -> str:
        """Start a run and bring it to a state by recording the events that lead there."""
        run = await create_run(self.engine, build_config("stepwise", test=self.trouble))
        folder = RunFolder(self.engine.runs / run.run_id)
        for checkout in (folder.repo, folder.site):
            checkout.mkdir(parents=True)
        lease = self.engine.store.acquire(run.run_id, "test", 60)
        assert lease is not None
        states = STATE_ORDER if state in STATE_ORDER else (*STATE_ORDER[:3], state)
        for old, new in pairwise(states[: states.index(state) + 1]):
            self._move(lease, old, new)
        self.engine.store.release(lease)
        return run.run_id

    def _move(self, lease: RunLease, old: RunState, new: RunState) -> None:
        step = None
        if old is RunState.LINKING:
            step = RecordedStep("apply", {}, 0.0)
        if old is RunState.VALIDATING:  # a report that asks for a fix, or none
            step = RecordedStep("validate:1", {"ok": new is not RunState.FIXING}, 0.0)
        if old is RunState.FIXING:  # the straight way goes from VALIDATING to READY_FOR_PR
            drafts = [
                make_state_event(RunState.FIXING, RunState.VALIDATING),
                make_state_event(RunState.VALIDATING, new),
            ]
            step = RecordedStep("validate:2", {"ok": True}, 0.0)
        else:
            drafts = [make_state_event(old, new)]
        self.engine.store.record(lease, drafts, TraceIds(), step=step)

    def add_report(self, run_id: str, *, ok: bool) -> None:
        """Record a report for a run in VALIDATING."""
        lease = self.engine.store.acquire(run_id, "test", 60)
        assert lease is not None
        step = RecordedStep("validate:1", {"ok": ok}, 0.0)
        self.engine.store.record(lease, [EventDraft("NOTE")], TraceIds(), step=step)
        self.engine.store.release(lease)

    async def call_tool(self, tool: str, run_id: str) -> dict[str, Any]:
        extra_arguments = {"artifact_name": "snapshot.json"} if tool == "get_artifact" else {}
        call = ToolCall(tool=f"launch_{tool}", arguments={"run_id": run_id, **extra_arguments})
        outcome: Outcome = await self._dispatcher.dispatch(call)
        body = LAUNCH.render_outcome(outcome, AnswerMeta(notes=call.meta.notes)).body
        assert body is not None
        return body


def read_code(body: dict[str, Any]) -> str:
    return "ok" if body["ok"] else str(body["error"]["code"])


@requirement(
    "e:answer:run-id",
    "e:code:illegal-state",
    "e:validate:state",
    "e:fix:state",
    "e:pr:state",
    "e:code:cancelled",
    "e:accept:retryable",
)
@pytest.mark.parametrize("state", RunState)
def test_every_tool_answers_as_its_preconditions_say(tmp_path: Path, state: RunState) -> None:
    async def call_every_tool() -> dict[str, str]:
        matrix = ToolMatrix(tmp_path)
        answers = {}
        for tool in (*READING_TOOLS, *MOVING_TOOLS):
            run_id = await matrix.start_run_at(state)
            if state is RunState.VALIDATING:
                matrix.add_report(run_id, ok=False)
            answer = await matrix.call_tool(tool, run_id)
            answers[tool] = read_code(answer)
            assert answer["run_id"] == run_id
            if answers[tool] in {"ILLEGAL_STATE", "CANCELLED"}:
                assert answer["error"]["retryable"] is False
                assert answer["error"]["details"]["state"] == state
                assert answer["error"]["details"]["hint"]
        return answers

    assert anyio.run(call_every_tool) == {
        tool: find_expected_code(tool, state) for tool in (*READING_TOOLS, *MOVING_TOOLS)
    }


@requirement("e:fix:report", "e:pr:report")
def test_a_fix_wants_a_report_that_is_not_ok_and_a_request_one_that_is(tmp_path: Path) -> None:
    async def call_with_wrong_reports() -> list[str]:
        matrix = ToolMatrix(tmp_path)
        none, good = await matrix.start_run_at(RunState.VALIDATING), await matrix.start_run_at(RunState.VALIDATING)
        matrix.add_report(good, ok=True)
        ready = await matrix.start_run_at(RunState.READY_FOR_PR)
        lease = matrix.engine.store.acquire(ready, "test", 60)
        assert lease is not None
        bad = RecordedStep("validate:9", {"ok": False}, 0.0)
        matrix.engine.store.record(lease, [EventDraft("NOTE")], TraceIds(), step=bad)
        matrix.engine.store.release(lease)
        return [
            read_code(await matrix.call_tool("fix_next", none)),
            read_code(await matrix.call_tool("fix_next", good)),
            read_code(await matrix.call_tool("open_pr", ready)),
        ]

    assert anyio.run(call_with_wrong_reports) == ["ILLEGAL_STATE"] * 3


def test_a_look_at_a_published_worktree_that_fails_leaves_the_run_done(tmp_path: Path) -> None:
    async def validate_published_run() -> tuple[str, str]:
        matrix = ToolMatrix(tmp_path)
        matrix.trouble = {"crash": {"validate:3": 1}}
        run_id = await matrix.start_run_at(RunState.DONE)
        answer = await matrix.call_tool("validate", run_id)
        return read_code(answer), matrix.engine.store.get(run_id).state

    assert anyio.run(validate_published_run) == ("INTERNAL", RunState.DONE)
