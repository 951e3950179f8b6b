"""Tests of what the envelope carries of a failure: the fields that a toolset's specification binds."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.launch.runs.events import NO_TRACE, EventDraft
from cleats.toolsets.launch.runs.states import STATE_ORDER, RunState
from cleats.toolsets.launch.store.databases import SqliteStore
from cleats.toolsets.launch.store.model import Run, make_state_event
from tests.support.http_client import CLEATS_COMMAND, WebServer, run_web_server
from tests.support.launch_runs import TEST_RUN_ID
from tests.support.requirements import requirement


def create_done_run(home: Path) -> None:
    store = SqliteStore(home / ".local/share/cleats/launch/runs.sqlite")
    new = Run(run_id=TEST_RUN_ID, product_slug="s", config={}, shown_config={}, config_hash="h")
    store.create(new, [EventDraft("RUN_CREATED", {"required_sections": []})], NO_TRACE)
    lease = store.acquire(TEST_RUN_ID, "test", 60)
    assert lease is not None
    states = [state for state in STATE_ORDER if state is not RunState.FIXING]
    changes = [make_state_event(old, new) for old, new in pairwise(states)]
    store.record(lease, changes, NO_TRACE)
    store.release(lease)
    store.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    home = tmp_path_factory.mktemp("failures")
    create_done_run(home)
    with run_web_server(*CLEATS_COMMAND, "launch", "assets", home=home, CLEATS_TELEMETRY="off") as web:
        yield web


def call_for_error(server: WebServer, tool: str, **arguments: Any) -> Any:
    body = server.call_tool(tool, **arguments).json
    assert body.keys() == {"ok", "error", "_meta"}
    assert body["ok"] is False
    return body["error"]


@requirement("e:answer:error")
def test_a_launch_failure_has_its_run_and_its_reason_in_the_details(server: WebServer) -> None:
    error = call_for_error(server, "launch_fix_next", run_id=TEST_RUN_ID)

    assert error["code"] == "ILLEGAL_STATE"
    assert error["details"].items() >= {"run_id": TEST_RUN_ID, "retryable": False, "state": "DONE"}.items()
    assert error["details"]["allowed"] == ["VALIDATING"]


@requirement("e:answer:error")
@pytest.mark.parametrize(
    ("tool", "arguments", "code", "facts"),
    [
        ("launch_get_status", {"run_id": "r_nowhere"}, "RUN_NOT_FOUND", {"run_id": "r_nowhere", "retryable": False}),
        (
            "launch_start_run_from_product_url",
            {"url": "http://products.aspose.org/3d/"},
            "INVALID_URL",
            {"retryable": False},
        ),
        ("get_schema", {"name": "nothing"}, "NOT_FOUND", {"reason": "not_found"}),
    ],
)
def test_a_failure_without_details_of_its_own_still_has_the_fields_of_its_toolset(
    server: WebServer, tool: str, arguments: dict[str, Any], code: str, facts: dict[str, Any]
) -> None:
    error = call_for_error(server, tool, **arguments)

    assert error["code"] == code
    assert error["details"].items() >= facts.items()


def test_arguments_that_an_asset_tool_refuses_are_listed_as_its_specification_says(server: WebServer) -> None:
    error = call_for_error(server, "get_schema", name=7)

    assert error["code"] == "INVALID_REQUEST"
    assert error["details"]["reason"] == "validation_failed"
    assert [fault["path"] for fault in error["details"]["errors"]] == ["/name"]
