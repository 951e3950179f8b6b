"""Tests of the log of a run: a tamper-evident chain, and the snapshot that is replayed from it."""

import hashlib
import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.runs.events import (
    GENESIS_HASH,
    BrokenChainError,
    EventDraft,
    LogTail,
    RunEvent,
    TraceIds,
    chain_events,
    verify_chain,
)
from cleats.toolsets.launch.runs.issues import Issue
from cleats.toolsets.launch.runs.snapshot import build_status, fold_event, list_open_issues, replay_events
from cleats.toolsets.launch.runs.states import LEGAL_TRANSITIONS, IllegalTransition, RunState

LOG_RUN_ID = "r_2026-01-21T10-00-00Z_0123abcd"
LOG_TRACE = TraceIds("1" * 32, "2" * 16, "3" * 16)
LOG_TIME = "2026-01-21T10:00:00.000Z"

DRAFT_LISTS = st.lists(
    st.builds(
        EventDraft,
        st.sampled_from(["GATE_RUN_STARTED", "LLM_CALL_STARTED"]),
        st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3),
    ),
    min_size=1,
    max_size=5,
)


def chain_drafts(drafts: list[EventDraft]) -> tuple[list[RunEvent], LogTail]:
    return chain_events(LOG_RUN_ID, LogTail(), drafts, LOG_TRACE, LOG_TIME)


def test_the_hash_of_an_event_can_be_computed_by_anybody() -> None:
    (event,), tail = chain_drafts([EventDraft("RUN_CREATED", {"b": 1, "a": "ä"})])

    line = event.as_json()
    payload = json.dumps(line["payload"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    hashed_text = line["event_id"] + line["ts"] + line["type"] + payload + line["prev_hash"]
    assert line["event_hash"] == hashlib.sha256(hashed_text.encode()).hexdigest()
    assert line["prev_hash"] == GENESIS_HASH
    assert tail == (1, line["event_hash"])


def test_a_line_of_the_log_fits_its_schema() -> None:
    (event,), _ = chain_drafts([EventDraft("RUN_CREATED", {"x": 1})])

    assert artifacts.find_faults("event", event.as_json()) == []
    assert artifacts.find_faults("event", {**event.as_json(), "more": 1}) != []


@given(DRAFT_LISTS)
def test_a_log_as_it_was_written_passes(drafts: list[EventDraft]) -> None:
    events, tail = chain_drafts(drafts)

    verify_chain(LOG_RUN_ID, events, tail)


@given(DRAFT_LISTS, st.data())
def test_a_changed_byte_in_any_field_of_any_event_is_found(drafts: list[EventDraft], data: st.DataObject) -> None:
    events, tail = chain_drafts(drafts)
    place = data.draw(st.integers(0, len(events) - 1))
    field = data.draw(st.sampled_from([event_field.name for event_field in fields(RunEvent)]))
    old = getattr(events[place], field)
    if isinstance(old, TraceIds):
        part = data.draw(st.integers(0, 2))
        changed_value: Any = TraceIds(*[_change_last_char(text) if i == part else text for i, text in enumerate(old)])
    else:
        changed_value = old + 1 if isinstance(old, int) else _change_last_char(old)
    events[place] = replace(events[place], **{field: changed_value})

    with pytest.raises(BrokenChainError) as broken:
        verify_chain(LOG_RUN_ID, events, tail)

    assert broken.value.details["reason"] == "EVENT_CHAIN_BROKEN"
    assert broken.value.details["seq"] <= place + 1


@given(DRAFT_LISTS, st.data())
def test_a_missing_event_is_found_wherever_it_was(drafts: list[EventDraft], data: st.DataObject) -> None:
    events, tail = chain_drafts(drafts)
    del events[data.draw(st.integers(0, len(events) - 1))]

    with pytest.raises(BrokenChainError):
        verify_chain(LOG_RUN_ID, events, tail)


def _change_last_char(text: str) -> str:
    return text[:-1] + ("0" if text[-1:] != "0" else "1")


RUN_STORIES = st.lists(
    st.one_of(
        st.tuples(st.just("state"), st.sampled_from(list(RunState))),
        st.tuples(st.just("issue"), st.integers(0, 3)),
        st.tuples(st.just("resolve"), st.integers(0, 3)),
        st.tuples(st.just("artifact"), st.integers(0, 2)),
        st.tuples(st.just("section"), st.sampled_from(["DRAFTED", "DONE"])),
        st.tuples(st.just("item"), st.integers(0, 1)),
        st.tuples(st.just("end"), st.integers(0, 1)),
    ),
    max_size=12,
)


def build_issue(number: int) -> Issue:
    return Issue.create(gate="g", severity="error", message=f"m{number}", error_code="E1")


def build_drafts(state: RunState, story: list[tuple[str, Any]]) -> list[EventDraft]:
    """Build a log that could have been written: illegal state changes are left out."""
    drafts = [EventDraft("RUN_CREATED", {"required_sections": ["docs"], "product_slug": "x"})]
    started_count = 0
    for kind, value in story:
        match kind:
            case "state" if value in LEGAL_TRANSITIONS[state]:
                drafts.append(EventDraft("RUN_STATE_CHANGED", {"old_state": state, "new_state": value}))
                state = value
            case "issue":
                drafts.append(EventDraft("ISSUE_OPENED", {"issue": build_issue(value).as_json()}))
            case "resolve":
                drafts.append(EventDraft("ISSUE_RESOLVED", {"issue_id": build_issue(value).issue_id}))
            case "artifact":
                name, digest = f"a{value}.md", f"{value}" * 64
                payload: dict[str, Any] = {
                    "path": f"objects/{digest}",
                    "sha256": digest,
                    "name": name,
                }
                extra_fields: dict[str, Any] = {"schema_id": "text/markdown", "writer_worker": "W5"}
                drafts.append(EventDraft("ARTIFACT_WRITTEN", {**payload, **extra_fields}))
            case "section":
                drafts.append(EventDraft("SECTION_STATE_CHANGED", {"section": "docs", "new_state": value}))
            case "item":
                started_count += 1
                payload = {"work_item_id": f"w{started_count}", "worker": "W1", "inputs": []}
                extra_fields = {"attempt": started_count, "scope_key": "clone"}
                drafts.append(EventDraft("WORK_ITEM_STARTED", {**payload, **extra_fields}))
            case "end" if started_count:
                item = {"work_item_id": f"w{started_count}"}
                error = {"code": "INTERNAL", "message": "m", "retryable": False}
                drafts.append(
                    EventDraft("WORK_ITEM_FINISHED", {**item, "outputs": ["a"]})
                    if value
                    else EventDraft("WORK_ITEM_FAILED", {**item, "error": error})
                )
    return drafts


@given(RUN_STORIES)
def test_the_snapshot_is_the_same_told_at_once_or_event_by_event(
    story: list[tuple[str, Any]],
) -> None:
    events, _ = chain_drafts(build_drafts(RunState.CREATED, story))

    snapshot = replay_events(LOG_RUN_ID, events)
    half = replay_events(LOG_RUN_ID, events[: len(events) // 2])
    for event in events[len(events) // 2 :]:
        half = fold_event(half, event)

    assert half == snapshot
    assert json.loads(json.dumps(snapshot)) == snapshot
    assert artifacts.find_faults("snapshot", snapshot) == []
    open_ids = {entry.issue_id for entry in list_open_issues(snapshot)}
    assert open_ids == {entry["issue_id"] for entry in build_status(snapshot)["open_issues"]}


def test_a_log_that_takes_no_edge_tells_nothing() -> None:
    events, _ = chain_drafts(
        [
            EventDraft("RUN_CREATED", {"required_sections": []}),
            EventDraft("RUN_STATE_CHANGED", {"old_state": "CREATED", "new_state": "DONE"}),
        ]
    )

    with pytest.raises(IllegalTransition):
        replay_events(LOG_RUN_ID, events)


def test_open_issues_are_listed_the_worst_first() -> None:
    issues = [
        Issue.create(gate="a", severity="warn", message="late"),
        Issue.create(gate="z", severity="blocker", message="first\nmore", error_code="X"),
        Issue.create(gate="b", severity="error", message="m", error_code="X", path="b", line=9),
        Issue.create(gate="b", severity="error", message="m", error_code="X", path="b", line=2),
    ]
    events, _ = chain_drafts([EventDraft("ISSUE_OPENED", {"issue": issue_entry.as_json()}) for issue_entry in issues])

    status = build_status(replay_events(LOG_RUN_ID, events))

    assert [issue_entry["issue_id"] for issue_entry in status["open_issues"]] == [
        issues[place].issue_id for place in (1, 3, 2, 0)
    ]
    assert status["open_issues"][0]["title"] == "first"


def test_an_issue_has_the_same_name_in_every_run() -> None:
    one = Issue.create(gate="links", severity="error", message="m", error_code="X", path="p", line=3)

    assert one.issue_id == "iss_" + hashlib.sha256(b"links|X|p|3|m").hexdigest()[:12]
    assert Issue.from_json(one.as_json()) == one
    assert artifacts.find_faults("issue", one.as_json()) == []
    with pytest.raises(ValueError, match="needs an error code"):
        Issue.create(gate="links", severity="error", message="m")
