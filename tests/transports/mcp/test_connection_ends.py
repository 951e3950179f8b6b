"""Tests of calls that end early: cancelled, timed out, refused, or cut off by a shutdown."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import process_trees as trees
from tests.support.mcp_client import ServerPeer, start_server
from tests.support.requirements import requirement
from tests.support.waiting import wait_until


def start_blocking_call(peer: ServerPeer, folder: Path, request_id: Any, name: str, token: Any = None) -> None:
    """Call the tool that waits forever, and wait until it begins."""
    meta = None if token is None else {"progressToken": token}
    peer.send_call(request_id, "block", meta, folder=str(folder), name=name)
    wait_until((folder / f"began-{name}").exists)


@requirement(
    "b:cancel:supported",
    "b:cancel:quiet",
    "a:cancel:stops-the-work",
    "a:cancel:ids-as-strings",
    "a:cancel:no-progress-after",
    "a:cancel:never-success",
)
@pytest.mark.parametrize(("sent", "cancelled"), [(5, 5), (6, "6"), ("7", 7), ("x", "x")])
def test_a_cancelled_call_stops_and_nothing_more_is_sent_for_it(tmp_path: Path, sent: Any, cancelled: Any) -> None:
    with start_server(home=tmp_path) as peer:
        start_blocking_call(peer, tmp_path, sent, "a", token="t")
        waiting = peer.receive()
        peer.send_notification("notifications/cancelled", {"requestId": cancelled, "reason": "enough"})
        wait_until((tmp_path / "stopped-a").exists)
        peer.close_input()

        assert waiting["params"]["message"] == "[block][phase=progress] waiting"
        assert peer.read_remaining() == []
        assert peer.wait_for_exit() == 0
        assert b"outcome=Cancelled" in peer.stderr


def test_a_cancel_for_nothing_is_heard_and_changes_nothing(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        for params in ({"requestId": 99}, {"requestId": None}, {"requestId": True}, {}, None):
            peer.send_notification("notifications/cancelled", params)
        peer.send_call(1, "echo", text="x")

        assert peer.receive()["id"] == 1


def test_a_call_that_waits_in_the_queue_can_be_cancelled(tmp_path: Path) -> None:
    with start_server(home=tmp_path, CLEATS_CONCURRENCY="1") as peer:
        start_blocking_call(peer, tmp_path, 1, "running")
        peer.send_call(2, "block", folder=str(tmp_path), name="queued")
        peer.send_notification("notifications/cancelled", {"requestId": 2})
        peer.send_notification("notifications/cancelled", {"requestId": 1})
        peer.send_call(3, "echo", text="x")

        assert peer.receive()["id"] == 3
        assert not (tmp_path / "began-queued").exists()


@requirement("b:overload:error")
def test_a_call_beyond_the_queue_is_refused_and_control_messages_are_not(tmp_path: Path) -> None:
    with start_server(home=tmp_path, CLEATS_CONCURRENCY="1", CLEATS_QUEUE="2") as peer:
        start_blocking_call(peer, tmp_path, 1, "a")
        for number in (2, 3, 4):
            peer.send_call(number, "echo", text="x")
        refusal = peer.receive()
        peer.send_request(5, "ping")
        peer.send_request(6, "tools/list")

        assert refusal["id"] == 4
        assert refusal["error"]["code"] == -32001
        assert refusal["error"]["message"]
        assert refusal["error"]["data"]["code"] == "QUEUE_OVERLOADED"
        assert refusal["error"]["data"]["message"]
        assert refusal["error"]["data"]["details"]["queue"] == {"max": 2, "size": 2}
        assert peer.receive()["id"] == 5
        assert peer.receive()["id"] == 6

        peer.send_notification("notifications/cancelled", {"requestId": 1})
        assert [peer.receive()["id"], peer.receive()["id"]] == [2, 3]


@requirement("b:timeout:tool-error", "a:timeout:aborts", "a:timeout:answer")
def test_a_call_past_its_deadline_is_stopped_and_says_how_long_it_had(tmp_path: Path) -> None:
    with start_server(home=tmp_path, CLEATS_TIMEOUTS="block=0.2") as peer:
        peer.send_call(1, "block", folder=str(tmp_path), name="a")
        result = peer.wait_for_answer(1)["result"]

    assert result["isError"] is True
    assert result["structuredContent"]["error"]["code"] == "TOOL_TIMEOUT"
    assert result["structuredContent"]["error"]["details"]["timeoutMs"] == 200
    assert (tmp_path / "stopped-a").exists()


def test_what_is_in_flight_at_the_end_of_input_is_answered(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        for number in range(20):
            peer.send_call(number, "count", steps=20)
        peer.close_input()
        answered = sorted(frame["id"] for frame in peer.read_remaining())

        assert answered == list(range(20))
        assert peer.wait_for_exit() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_running_calls_finish_and_exits_with_zero(tmp_path: Path, number: signal.Signals) -> None:
    with start_server(home=tmp_path, CLEATS_DRAIN="20") as peer:
        peer.send_call(1, "count", {"progressToken": 1}, steps=400)
        peer.receive()
        peer.send_signal(number)

        assert peer.read_remaining()[-1]["result"]["structuredContent"]["result"] == {"steps": 400}
        assert peer.wait_for_exit() == 0
        assert f"serve.end reason={number.name}".encode() in peer.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_call_that_outlasts_the_drain_is_stopped_and_answered(tmp_path: Path, number: signal.Signals) -> None:
    with start_server(home=tmp_path, CLEATS_DRAIN="0.1") as peer:
        start_blocking_call(peer, tmp_path, 1, "a")
        peer.send_signal(number)
        [answer] = peer.read_remaining()

        assert answer["result"]["isError"] is True
        assert answer["result"]["structuredContent"]["error"]["code"] == "CANCELLED"
        assert (tmp_path / "stopped-a").exists()
        assert peer.wait_for_exit() == 0


def test_an_idle_server_exits_with_zero_on_each_way_out(tmp_path: Path) -> None:
    for leave in (
        ServerPeer.close_input,
        lambda peer: peer.send_signal(signal.SIGINT),
        lambda peer: peer.send_signal(signal.SIGTERM),
    ):
        with start_server(home=tmp_path) as peer:
            leave(peer)

            assert peer.wait_for_exit() == 0


def test_a_client_that_stops_listening_ends_the_server(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        start_blocking_call(peer, tmp_path, 1, "a")
        peer.close_output()

        assert peer.wait_for_exit() == 0
        assert (tmp_path / "stopped-a").exists()


def cancel_call(peer: ServerPeer) -> None:
    peer.send_notification("notifications/cancelled", {"requestId": 1})


def wait_for_timeout(peer: ServerPeer) -> None:
    """Wait for the answer that the tool's own timeout causes."""
    assert peer.wait_for_answer(1)["result"]["structuredContent"]["error"]["code"] == "TOOL_TIMEOUT"


def close_connection(peer: ServerPeer) -> None:
    """Close both ends, as a client that dies does."""
    peer.close_input()
    peer.close_output()


@requirement("a:timeout:kills-subprocesses", "a:kill:all-descendants", "a:kill:setsid-grandchild")
@pytest.mark.skipif(sys.platform != "linux", reason="a tree is found through /proc")
@pytest.mark.parametrize("kind", ["setsid", "double", "ignoreterm"])
@pytest.mark.parametrize(
    ("ending", "environ"),
    [
        (cancel_call, {}),
        (wait_for_timeout, {"CLEATS_TIMEOUTS": "tree=2"}),
        (close_connection, {}),
        (lambda peer: peer.send_signal(signal.SIGTERM), {}),
        (lambda peer: peer.send_signal(signal.SIGKILL), {}),
    ],
    ids=["cancel", "timeout", "disconnect", "sigterm", "sigkill"],
)
def test_no_process_of_a_call_outlives_its_end(tmp_path: Path, kind: str, ending: Any, environ: dict[str, Any]) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    with start_server(home=tmp_path, **environ) as peer:
        peer.send_call(1, "tree", folder=str(folder), kind=kind)
        # A busy machine may not get as far in the time that the call has; then what there is of
        # the tree must end.
        wait_until(lambda: trees.is_grown(folder, kind) or (ending is wait_for_timeout and len(peer.lines) > 1))
        ending(peer)

        wait_until(lambda: not trees.find_living(folder))
