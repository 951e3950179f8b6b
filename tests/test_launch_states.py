"""The states of a run: a table, and the laws that it keeps."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.launch.drive.steps import STAGES
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
