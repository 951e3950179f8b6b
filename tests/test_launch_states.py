"""The states of a run: a table, and the laws that it keeps."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.launch.drive.steps import (
    SECTIONS,
    STAGES,
    View,
    Work,
    following,
    pending,
    publication,
    rewinding,
    validation,
)
from cleats.toolsets.launch.states import (
    EDGES,
    ORDER,
    REWINDS,
    STABLE,
    TERMINAL,
    IllegalTransition,
    SectionState,
    State,
    at_least,
    check,
)

STATES = st.sampled_from(list(State))


def reachable(state: State) -> set[State]:
    found, open_ = {state}, [state]
    while open_:
        for after in EDGES[open_.pop()]:
            if after not in found:
                found.add(after)
                open_.append(after)
    return found


def test_there_are_fifteen_states_and_six_of_a_section() -> None:
    assert len(State) == 15
    assert len(SectionState) == 6
    assert EDGES.keys() == set(State)


def test_the_whole_chain_can_be_walked() -> None:
    walk = [state for state in ORDER if state is not State.FIXING]

    for old, new in pairwise(walk):
        check(old, new)


def test_a_failed_validation_can_be_fixed_and_looked_at_again() -> None:
    check(State.VALIDATING, State.FIXING)
    check(State.FIXING, State.VALIDATING)
    check(State.READY_FOR_PR, State.VALIDATING)


@given(STATES, STATES)
def test_only_the_edges_of_the_table_are_legal(old: State, new: State) -> None:
    if new in EDGES[old]:
        check(old, new)
    else:
        with pytest.raises(IllegalTransition, match=f"from {old} to {new}"):
            check(old, new)


@given(STATES)
def test_an_end_absorbs_and_everything_else_can_fail_and_be_cancelled(state: State) -> None:
    if state in TERMINAL:
        assert EDGES[state] == frozenset()
    else:
        assert {State.FAILED, State.CANCELLED} <= EDGES[state]


@given(STATES)
def test_every_run_that_has_not_ended_can_still_be_done(state: State) -> None:
    assert state in TERMINAL or State.DONE in reachable(state)


@given(STATES, STATES)
def test_a_run_is_at_least_where_the_order_says(state: State, other: State) -> None:
    if other not in ORDER:
        return
    expected = state in ORDER and ORDER.index(state) >= ORDER.index(other)

    assert at_least(state, other) == expected


def test_the_pipeline_and_the_rewinds_follow_edges() -> None:
    for state, (_, then) in STAGES.items():
        check(state, then)
    for state, back in REWINDS.items():
        check(state, back)
    assert STABLE.isdisjoint(TERMINAL)


@dataclass
class Walk:
    """A run without workers: what would be done, and what it would say, as the dice fall."""

    dice: st.DataObject
    view: View
    surprises: int = 3
    """How often the worktree may still change by itself."""

    def enter(self, state: State) -> None:
        check(self.view.state, state)
        self.view = View(state, self.view.done, self.view.config)

    def do(self, work: Work) -> None:
        assert work.step not in self.view.done, "a step is done once"
        facts: dict[str, Any] = {}
        if work.kind.name == "validate":
            facts = {"ok": self.dice.draw(st.booleans())}
        if work.kind.name == "fix":
            facts = {"issue_id": "i", "patch_ids": self.dice.draw(st.sampled_from([[], ["p"]]))}
        if work.kind.name == "apply" and self.view.state in REWINDS and self.rare():
            noted = {**self.view.done, rewinding(self.view): {}}
            back = REWINDS[self.view.state]
            check(self.view.state, back)
            self.view = View(back, noted, self.view.config)
            return
        then = following(self.view, work, facts)
        if then is not None:
            check(self.view.state, then)
        done = {**self.view.done, work.step: facts}
        self.view = View(then or self.view.state, done, self.view.config)

    def rare(self) -> bool:
        happens = self.surprises > 0 and self.dice.draw(st.booleans())
        self.surprises -= happens
        return happens


@given(st.lists(st.sampled_from(SECTIONS), min_size=1, unique=True), st.data())
def test_every_run_ends_or_rests_and_does_no_step_twice(
    sections: list[str], dice: st.DataObject
) -> None:
    walk = Walk(dice, View(State.CREATED, {}, {"required_sections": sections}))

    for _ in range(60):
        todo = pending(walk.view)
        if isinstance(todo, State):
            walk.enter(todo)
        elif todo is not None:
            walk.do(todo)
        elif walk.view.fixable and walk.view.fixes < 3:
            walk.enter(State.FIXING)
        elif walk.view.state is State.READY_FOR_PR and walk.rare():
            walk.do(validation(walk.view))
        elif walk.view.state is State.READY_FOR_PR and (work := publication(walk.view)):
            walk.do(work)
        else:
            break

    state, done = walk.view.state, list(walk.view.done)
    assert state is State.DONE or walk.view.fixable
    drafted = [step.partition(":")[2] for step in done if step.startswith("draft:")]
    assert drafted == [section for section in SECTIONS if section in sections]
    if state is State.DONE:
        last = [step for step in done if step.startswith("validate")][-1]
        assert walk.view.done[last]["ok"]
        assert done.index(last) < len(done) - 2  # what is published was looked at before
