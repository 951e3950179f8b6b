"""The log of a run: a chain in which no byte can change, and the snapshot that it tells."""

import hashlib
import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.launch import artifacts
from cleats.toolsets.launch.events import (
    GENESIS,
    BrokenChainError,
    Draft,
    Event,
    Tail,
    Trace,
    chain,
    verify,
)
from cleats.toolsets.launch.issues import Issue
from cleats.toolsets.launch.snapshot import fold, open_issues, replay, status_of
from cleats.toolsets.launch.states import EDGES, IllegalTransition, State

RUN = "r_2026-01-21T10-00-00Z_0123abcd"
TRACE = Trace("1" * 32, "2" * 16, "3" * 16)
NOW = "2026-01-21T10:00:00.000Z"

DRAFTS = st.lists(
    st.builds(
        Draft,
        st.sampled_from(["GATE_RUN_STARTED", "LLM_CALL_STARTED"]),
        st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3),
    ),
    min_size=1,
    max_size=5,
)


def log(drafts: list[Draft]) -> tuple[list[Event], Tail]:
    return chain(RUN, Tail(), drafts, TRACE, NOW)


def test_the_hash_of_an_event_can_be_computed_by_anybody() -> None:
    (event,), tail = log([Draft("RUN_CREATED", {"b": 1, "a": "ä"})])

    line = event.as_json()
    payload = json.dumps(line["payload"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    whole = line["event_id"] + line["ts"] + line["type"] + payload + line["prev_hash"]
    assert line["event_hash"] == hashlib.sha256(whole.encode()).hexdigest()
    assert line["prev_hash"] == GENESIS
    assert tail == (1, line["event_hash"])


def test_a_line_of_the_log_fits_its_schema() -> None:
    (event,), _ = log([Draft("RUN_CREATED", {"x": 1})])

    assert artifacts.faults("event", event.as_json()) == []
    assert artifacts.faults("event", {**event.as_json(), "more": 1}) != []


@given(DRAFTS)
def test_a_log_as_it_was_written_passes(drafts: list[Draft]) -> None:
    events, tail = log(drafts)

    verify(RUN, events, tail)


@given(DRAFTS, st.data())
def test_a_changed_byte_in_any_field_of_any_event_is_found(
    drafts: list[Draft], data: st.DataObject
) -> None:
    events, tail = log(drafts)
    place = data.draw(st.integers(0, len(events) - 1))
    field = data.draw(st.sampled_from([each.name for each in fields(Event)]))
    old = getattr(events[place], field)
    if isinstance(old, Trace):
        part = data.draw(st.integers(0, 2))
        changed: Any = Trace(*[_other(text) if i == part else text for i, text in enumerate(old)])
    else:
        changed = old + 1 if isinstance(old, int) else _other(old)
    events[place] = replace(events[place], **{field: changed})

    with pytest.raises(BrokenChainError) as broken:
        verify(RUN, events, tail)

    assert broken.value.details["reason"] == "EVENT_CHAIN_BROKEN"
    assert broken.value.details["seq"] <= place + 1


@given(DRAFTS, st.data())
def test_a_missing_event_is_found_wherever_it_was(drafts: list[Draft], data: st.DataObject) -> None:
    events, tail = log(drafts)
    del events[data.draw(st.integers(0, len(events) - 1))]

    with pytest.raises(BrokenChainError):
        verify(RUN, events, tail)


def _other(text: str) -> str:
    return text[:-1] + ("0" if text[-1:] != "0" else "1")


STORIES = st.lists(
    st.one_of(
        st.tuples(st.just("state"), st.sampled_from(list(State))),
        st.tuples(st.just("issue"), st.integers(0, 3)),
        st.tuples(st.just("resolve"), st.integers(0, 3)),
        st.tuples(st.just("artifact"), st.integers(0, 2)),
        st.tuples(st.just("section"), st.sampled_from(["DRAFTED", "DONE"])),
        st.tuples(st.just("item"), st.integers(0, 1)),
        st.tuples(st.just("end"), st.integers(0, 1)),
    ),
    max_size=12,
)


def issue(number: int) -> Issue:
    return Issue.make(gate="g", severity="error", message=f"m{number}", error_code="E1")


def told(state: State, story: list[tuple[str, Any]]) -> list[Draft]:
    """A log that could have been written: illegal changes of state are left out."""
    drafts = [Draft("RUN_CREATED", {"required_sections": ["docs"], "product_slug": "x"})]
    started = 0
    for kind, value in story:
        match kind:
            case "state" if value in EDGES[state]:
                drafts.append(Draft("RUN_STATE_CHANGED", {"old_state": state, "new_state": value}))
                state = value
            case "issue":
                drafts.append(Draft("ISSUE_OPENED", {"issue": issue(value).as_json()}))
            case "resolve":
                drafts.append(Draft("ISSUE_RESOLVED", {"issue_id": issue(value).issue_id}))
            case "artifact":
                name, digest = f"a{value}.md", f"{value}" * 64
                payload: dict[str, Any] = {
                    "path": f"objects/{digest}",
                    "sha256": digest,
                    "name": name,
                }
                more: dict[str, Any] = {"schema_id": "text/markdown", "writer_worker": "W5"}
                drafts.append(Draft("ARTIFACT_WRITTEN", {**payload, **more}))
            case "section":
                drafts.append(
                    Draft("SECTION_STATE_CHANGED", {"section": "docs", "new_state": value})
                )
            case "item":
                started += 1
                payload = {"work_item_id": f"w{started}", "worker": "W1", "inputs": []}
                more = {"attempt": started, "scope_key": "clone"}
                drafts.append(Draft("WORK_ITEM_STARTED", {**payload, **more}))
            case "end" if started:
                item = {"work_item_id": f"w{started}"}
                error = {"code": "INTERNAL", "message": "m", "retryable": False}
                drafts.append(
                    Draft("WORK_ITEM_FINISHED", {**item, "outputs": ["a"]})
                    if value
                    else Draft("WORK_ITEM_FAILED", {**item, "error": error})
                )
    return drafts


@given(STORIES)
def test_the_snapshot_is_the_same_told_at_once_or_event_by_event(
    story: list[tuple[str, Any]],
) -> None:
    events, _ = log(told(State.CREATED, story))

    whole = replay(RUN, events)
    half = replay(RUN, events[: len(events) // 2])
    for event in events[len(events) // 2 :]:
        half = fold(half, event)

    assert half == whole
    assert json.loads(json.dumps(whole)) == whole
    assert artifacts.faults("snapshot", whole) == []
    opened = {each.issue_id for each in open_issues(whole)}
    assert opened == {each["issue_id"] for each in status_of(whole)["open_issues"]}


def test_a_log_that_takes_no_edge_tells_nothing() -> None:
    events, _ = log(
        [
            Draft("RUN_CREATED", {"required_sections": []}),
            Draft("RUN_STATE_CHANGED", {"old_state": "CREATED", "new_state": "DONE"}),
        ]
    )

    with pytest.raises(IllegalTransition):
        replay(RUN, events)


def test_open_issues_are_listed_the_worst_first() -> None:
    found = [
        Issue.make(gate="a", severity="warn", message="late"),
        Issue.make(gate="z", severity="blocker", message="first\nmore", error_code="X"),
        Issue.make(gate="b", severity="error", message="m", error_code="X", path="b", line=9),
        Issue.make(gate="b", severity="error", message="m", error_code="X", path="b", line=2),
    ]
    events, _ = log([Draft("ISSUE_OPENED", {"issue": each.as_json()}) for each in found])

    status = status_of(replay(RUN, events))

    assert [each["issue_id"] for each in status["open_issues"]] == [
        found[place].issue_id for place in (1, 3, 2, 0)
    ]
    assert status["open_issues"][0]["title"] == "first"


def test_an_issue_has_the_same_name_in_every_run() -> None:
    one = Issue.make(gate="links", severity="error", message="m", error_code="X", path="p", line=3)

    assert one.issue_id == "iss_" + hashlib.sha256(b"links|X|p|3|m").hexdigest()[:12]
    assert Issue.of(one.as_json()) == one
    assert artifacts.faults("issue", one.as_json()) == []
    with pytest.raises(ValueError, match="needs an error code"):
        Issue.make(gate="links", severity="error", message="m")
