"""Tests of the states of a run: a table, and its laws."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.launch.drive.pipeline import (
    SECTION_ORDER,
    STAGES_BY_STATE,
    PipelineView,
    StepWork,
    find_next_action,
    find_next_state,
    find_publication_work,
    make_rewind_step,
    make_validation_work,
)
from cleats.toolsets.launch.runs.states import (
    LEGAL_TRANSITIONS,
    REWIND_TARGETS,
    STABLE_STATES,
    STATE_ORDER,
    TERMINAL_STATES,
    IllegalTransition,
    RunState,
    SectionState,
    check_transition,
    has_reached,
)

RUN_STATES = st.sampled_from(list(RunState))


def list_reachable_states(state: RunState) -> set[RunState]:
    states, open_states = {state}, [state]
    while open_states:
        for after in LEGAL_TRANSITIONS[open_states.pop()]:
            if after not in states:
                states.add(after)
                open_states.append(after)
    return states


def test_there_are_fifteen_states_and_six_of_a_section() -> None:
    assert len(RunState) == 15
    assert len(SectionState) == 6
    assert LEGAL_TRANSITIONS.keys() == set(RunState)


def test_the_whole_chain_can_be_walked() -> None:
    walk = [state for state in STATE_ORDER if state is not RunState.FIXING]

    for old, new in pairwise(walk):
        check_transition(old, new)


def test_a_failed_validation_can_be_fixed_and_looked_at_again() -> None:
    check_transition(RunState.VALIDATING, RunState.FIXING)
    check_transition(RunState.FIXING, RunState.VALIDATING)
    check_transition(RunState.READY_FOR_PR, RunState.VALIDATING)


@given(RUN_STATES, RUN_STATES)
def test_only_the_edges_of_the_table_are_legal(old: RunState, new: RunState) -> None:
    if new in LEGAL_TRANSITIONS[old]:
        check_transition(old, new)
    else:
        with pytest.raises(IllegalTransition, match=f"from {old} to {new}"):
            check_transition(old, new)


@given(RUN_STATES)
def test_an_end_absorbs_and_everything_else_can_fail_and_be_cancelled(state: RunState) -> None:
    if state in TERMINAL_STATES:
        assert LEGAL_TRANSITIONS[state] == frozenset()
    else:
        assert {RunState.FAILED, RunState.CANCELLED} <= LEGAL_TRANSITIONS[state]


@given(RUN_STATES)
def test_every_run_that_has_not_ended_can_still_be_done(state: RunState) -> None:
    assert state in TERMINAL_STATES or RunState.DONE in list_reachable_states(state)


@given(RUN_STATES, RUN_STATES)
def test_a_run_is_at_least_where_the_order_says(state: RunState, other: RunState) -> None:
    if other not in STATE_ORDER:
        return
    expected = state in STATE_ORDER and STATE_ORDER.index(state) >= STATE_ORDER.index(other)

    assert has_reached(state, other) == expected


def test_the_pipeline_and_the_rewinds_follow_edges() -> None:
    for state, (_, next_state) in STAGES_BY_STATE.items():
        check_transition(state, next_state)
    for state, back in REWIND_TARGETS.items():
        check_transition(state, back)
    assert STABLE_STATES.isdisjoint(TERMINAL_STATES)


@dataclass
class SimulatedRun:
    """A run without workers, which does and answers what the dice decide."""

    dice: st.DataObject
    view: PipelineView
    surprises: int = 3
    """The number of times that the worktree may still change by itself."""

    def enter(self, state: RunState) -> None:
        check_transition(self.view.state, state)
        self.view = PipelineView(state, self.view.done, self.view.config)

    def do(self, work: StepWork) -> None:
        assert work.step not in self.view.done, "a step is done once"
        facts: dict[str, Any] = {}
        if work.kind.name == "validate":
            facts = {"ok": self.dice.draw(st.booleans())}
        if work.kind.name == "fix":
            facts = {"issue_id": "i", "patch_ids": self.dice.draw(st.sampled_from([[], ["p"]]))}
        if work.kind.name == "apply" and self.view.state in REWIND_TARGETS and self.draw_surprise():
            done_steps = {**self.view.done, make_rewind_step(self.view): {}}
            previous_state = REWIND_TARGETS[self.view.state]
            check_transition(self.view.state, previous_state)
            self.view = PipelineView(previous_state, done_steps, self.view.config)
            return
        next_state = find_next_state(self.view, work, facts)
        if next_state is not None:
            check_transition(self.view.state, next_state)
        finished_steps = {**self.view.done, work.step: facts}
        self.view = PipelineView(next_state or self.view.state, finished_steps, self.view.config)

    def draw_surprise(self) -> bool:
        happens = self.surprises > 0 and self.dice.draw(st.booleans())
        self.surprises -= happens
        return happens


@given(st.lists(st.sampled_from(SECTION_ORDER), min_size=1, unique=True), st.data())
def test_every_run_ends_or_rests_and_does_no_step_twice(sections: list[str], dice: st.DataObject) -> None:
    walk = SimulatedRun(dice, PipelineView(RunState.CREATED, {}, {"required_sections": sections}))

    for _ in range(60):
        todo = find_next_action(walk.view)
        if isinstance(todo, RunState):
            walk.enter(todo)
        elif todo is not None:
            walk.do(todo)
        elif walk.view.can_fix and walk.view.fix_count < 3:
            walk.enter(RunState.FIXING)
        elif walk.view.state is RunState.READY_FOR_PR and walk.draw_surprise():
            walk.do(make_validation_work(walk.view))
        elif walk.view.state is RunState.READY_FOR_PR and (work := find_publication_work(walk.view)):
            walk.do(work)
        else:
            break

    state, done = walk.view.state, list(walk.view.done)
    assert state is RunState.DONE or walk.view.can_fix
    drafted = [step.partition(":")[2] for step in done if step.startswith("draft:")]
    assert drafted == [section for section in SECTION_ORDER if section in sections]
    if state is RunState.DONE:
        last = [step for step in done if step.startswith("validate")][-1]
        assert walk.view.done[last]["ok"]
        assert done.index(last) < len(done) - 2  # what is published was looked at before
