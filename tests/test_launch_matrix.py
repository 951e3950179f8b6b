"""Every tool in every state: what it answers is what its preconditions say.

The store, the engine and the tools are the real ones. A worker that is reached says so and does
nothing else, so that a cell costs one process at the most.
"""

from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.outcome import Outcome
from cleats.contract.payload import LAUNCH, Meta
from cleats.contract.registry import Registry
from cleats.runtime.call import Call
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.telemetry import Telemetry
from cleats.settings import Settings
from cleats.toolsets.launch.drive.driver import Engine
from cleats.toolsets.launch.drive.steps import KINDS
from cleats.toolsets.launch.events import Draft, Trace
from cleats.toolsets.launch.folder import RunFolder
from cleats.toolsets.launch.service import Launches
from cleats.toolsets.launch.states import ORDER, TERMINAL, State
from cleats.toolsets.launch.store.journal import to_state
from cleats.toolsets.launch.store.port import Lease, Step
from cleats.toolsets.launch.tools import over
from tests.launch_world import config, engine, start
from tests.requirements import requirement

REACHED = "TOOLCHAIN_MISSING"
"""What the worker of these tests says, and nobody else."""

SAYS_SO = {
    "raise": {
        step: {"code": REACHED}
        for kind in KINDS
        for step in (kind, f"{kind}:1", f"{kind}:2", f"{kind}:3", f"{kind}:docs")
    }
}

MOVING = ("validate", "fix_next", "resume", "cancel", "open_pr")
READING = ("get_status", "get_artifact")
VALIDATED = {
    State.LINKING,
    State.VALIDATING,
    State.FIXING,
    State.READY_FOR_PR,
    State.PR_OPENED,
    State.DONE,
}
RESTS = {State.VALIDATING, State.READY_FOR_PR}
"""Where a run waits for a decision, so that resuming changes nothing."""


def expected(tool: str, state: State) -> str:
    """The code of the answer; `ok`, or `reached` where a worker gets to work."""
    if tool in READING:
        return "ok"
    if tool == "cancel":
        return "ILLEGAL_STATE" if state in {State.DONE, State.FAILED} else "ok"
    if state is State.CANCELLED:
        return "CANCELLED"
    allowed = {
        "validate": VALIDATED,
        "fix_next": {State.VALIDATING},
        "resume": set(State) - TERMINAL,
        "open_pr": {State.READY_FOR_PR},
    }[tool]
    if state not in allowed:
        return "ILLEGAL_STATE"
    finished = tool == "resume" and state in {*RESTS, State.PR_OPENED}
    return "ok" if finished else REACHED


class Matrix:
    """An engine, and the tools over it."""

    def __init__(self, tmp_path: Path) -> None:
        self.engine = engine(tmp_path)
        self.trouble: dict[str, Any] = SAYS_SO
        made = self.engine

        class Fixed(Launches):
            @cached_property
            def engine(self) -> Engine:
                return made

        self._dispatcher = Dispatcher(
            Registry([over(Fixed(Settings()))]),
            concurrency=4,
            queue=0,
            telemetry=Telemetry(log_calls=False),
        )

    async def at(self, state: State) -> str:
        """A run in a state, as its events would have brought it there."""
        run = await start(self.engine, config("stepwise", test=self.trouble))
        folder = RunFolder(self.engine.runs / run.run_id)
        for checkout in (folder.repo, folder.site):
            checkout.mkdir(parents=True)
        lease = self.engine.store.acquire(run.run_id, "test", 60)
        assert lease is not None
        way = ORDER if state in ORDER else (*ORDER[:3], state)
        for old, new in pairwise(way[: way.index(state) + 1]):
            self._move(lease, old, new)
        self.engine.store.release(lease)
        return run.run_id

    def _move(self, lease: Lease, old: State, new: State) -> None:
        step = None
        if old is State.LINKING:
            step = Step("apply", {}, 0.0)
        if old is State.VALIDATING:  # a report that asks for a fix, or none
            step = Step("validate:1", {"ok": new is not State.FIXING}, 0.0)
        if old is State.FIXING:  # the straight way goes from VALIDATING to READY_FOR_PR
            drafts = [to_state(State.FIXING, State.VALIDATING), to_state(State.VALIDATING, new)]
            step = Step("validate:2", {"ok": True}, 0.0)
        else:
            drafts = [to_state(old, new)]
        self.engine.store.record(lease, drafts, Trace(), step=step)

    def rest(self, run_id: str, *, ok: bool) -> None:
        """A report for a run in VALIDATING."""
        lease = self.engine.store.acquire(run_id, "test", 60)
        assert lease is not None
        step = Step("validate:1", {"ok": ok}, 0.0)
        self.engine.store.record(lease, [Draft("NOTE")], Trace(), step=step)
        self.engine.store.release(lease)

    async def ask(self, tool: str, run_id: str) -> dict[str, Any]:
        more = {"artifact_name": "snapshot.json"} if tool == "get_artifact" else {}
        call = Call(tool=f"launch_{tool}", arguments={"run_id": run_id, **more})
        outcome: Outcome = await self._dispatcher.dispatch(call)
        body = LAUNCH.seal(outcome, Meta(notes=call.meta.notes)).body
        assert body is not None
        return body


def said(body: dict[str, Any]) -> str:
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
@pytest.mark.parametrize("state", State)
def test_every_tool_answers_as_its_preconditions_say(tmp_path: Path, state: State) -> None:
    async def look() -> dict[str, str]:
        matrix = Matrix(tmp_path)
        answers = {}
        for tool in (*READING, *MOVING):
            run_id = await matrix.at(state)
            if state is State.VALIDATING:
                matrix.rest(run_id, ok=False)
            answer = await matrix.ask(tool, run_id)
            answers[tool] = said(answer)
            assert answer["run_id"] == run_id
            if answers[tool] in {"ILLEGAL_STATE", "CANCELLED"}:
                assert answer["error"]["retryable"] is False
                assert answer["error"]["details"]["state"] == state
                assert answer["error"]["details"]["hint"]
        return answers

    assert anyio.run(look) == {tool: expected(tool, state) for tool in (*READING, *MOVING)}


@requirement("e:fix:report", "e:pr:report")
def test_a_fix_wants_a_report_that_is_not_ok_and_a_request_one_that_is(tmp_path: Path) -> None:
    async def look() -> list[str]:
        matrix = Matrix(tmp_path)
        none, good = await matrix.at(State.VALIDATING), await matrix.at(State.VALIDATING)
        matrix.rest(good, ok=True)
        ready = await matrix.at(State.READY_FOR_PR)
        lease = matrix.engine.store.acquire(ready, "test", 60)
        assert lease is not None
        bad = Step("validate:9", {"ok": False}, 0.0)
        matrix.engine.store.record(lease, [Draft("NOTE")], Trace(), step=bad)
        matrix.engine.store.release(lease)
        return [
            said(await matrix.ask("fix_next", none)),
            said(await matrix.ask("fix_next", good)),
            said(await matrix.ask("open_pr", ready)),
        ]

    assert anyio.run(look) == ["ILLEGAL_STATE"] * 3


def test_a_look_at_a_published_worktree_that_fails_leaves_the_run_done(tmp_path: Path) -> None:
    async def look() -> tuple[str, str]:
        matrix = Matrix(tmp_path)
        matrix.trouble = {"crash": {"validate:3": 1}}
        run_id = await matrix.at(State.DONE)
        answer = await matrix.ask("validate", run_id)
        return said(answer), matrix.engine.store.get(run_id).state

    assert anyio.run(look) == ("INTERNAL", State.DONE)
