"""Tests of a client's roots, which are asked for where the server has no repository of its own."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_client import INITIALIZE_PARAMS, ServerPeer, start_server

EXPLORE_COMMAND = (sys.executable, "-m", "cleats", "serve", "explore", "code")


def make_project(folder: Path, text: str) -> Path:
    """Make a folder that is recognised as a repository, with one file."""
    (folder / ".git").mkdir(parents=True)
    (folder / "code.py").write_text(f"def work():\n    return '{text}'\n")
    return folder


def connect_with_roots(peer: ServerPeer) -> None:
    peer.send_request("init", "initialize", {**INITIALIZE_PARAMS, "capabilities": {"roots": {"listChanged": True}}})
    peer.wait_for_answer("init")
    peer.send_notification("notifications/initialized")
    peer.send_request("list", "tools/list")
    peer.wait_for_answer("list")


def answer_roots(peer: ServerPeer, folders: Sequence[Path]) -> None:
    """Wait for the server's question and answer it."""
    question = peer.receive()
    assert question["method"] == "roots/list"
    roots = [{"uri": folder.as_uri()} for folder in folders]
    peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": roots}})


def grep_text(peer: ServerPeer, request_id: int) -> str:
    peer.send_call(request_id, "grep_code", pattern="return")
    text: str = peer.wait_for_answer(request_id)["result"]["content"][0]["text"]
    return text


def test_the_first_root_that_is_a_repository_is_the_default_and_a_change_is_followed(tmp_path: Path) -> None:
    first, second = make_project(tmp_path / "a b", "first"), make_project(tmp_path / "second", "second")
    plain = tmp_path / "plain"
    plain.mkdir()
    with start_server(*EXPLORE_COMMAND, home=tmp_path, ready=False) as peer:
        connect_with_roots(peer)
        answer_roots(peer, [tmp_path / "missing", plain, first, second])
        before = grep_text(peer, 1)
        peer.send_notification("notifications/roots/list_changed")
        answer_roots(peer, [second])
        after = grep_text(peer, 2)

    assert "'first'" in before
    assert "'second'" in after


def test_a_call_that_comes_before_the_roots_waits_for_them(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", "found")
    with start_server(*EXPLORE_COMMAND, home=tmp_path, ready=False) as peer:
        connect_with_roots(peer)
        peer.send_call(1, "grep_code", pattern="return")
        answer_roots(peer, [project])

        assert "'found'" in peer.wait_for_answer(1)["result"]["content"][0]["text"]


@pytest.mark.parametrize(
    "response", [{"error": {"code": -32601, "message": "no"}}, {"result": {"roots": [{"uri": 1}]}}, {"result": None}]
)
def test_a_client_that_gives_no_roots_is_told_to_name_a_repository(tmp_path: Path, response: dict[str, Any]) -> None:
    with start_server(*EXPLORE_COMMAND, home=tmp_path, ready=False) as peer:
        connect_with_roots(peer)
        peer.send({"jsonrpc": "2.0", "id": peer.receive()["id"], **response})

        assert "Give the folder of a project as repo." in grep_text(peer, 1)


def test_outside_of_a_repository_errors_name_the_argument_and_the_indexed_repositories(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", "found")
    with start_server(*EXPLORE_COMMAND, home=tmp_path) as peer:
        peer.send_call(1, "build_index", repoPath=str(project))
        assert peer.wait_for_answer(1)["result"]["isError"] is False
        calls = {
            "grep_code": {"pattern": "x"},
            "find_code": {"query": "x"},
            "build_index": {},
            "search": {"query": "x"},
        }
        errors = {}
        for number, (tool, arguments) in enumerate(calls.items(), start=2):
            peer.send_call(number, tool, **arguments)
            errors[tool] = peer.wait_for_answer(number)["result"]["content"][0]["text"]

    for tool, text in errors.items():
        argument = "repo" if tool in {"grep_code", "find_code"} else "repoPath"
        assert f"These have an index, for {argument}: {project}." in text, tool
        assert f"as {argument}." in text, tool


def test_a_server_in_a_repository_does_not_ask_for_roots(tmp_path: Path) -> None:
    make_project(tmp_path, "own")
    with start_server(*EXPLORE_COMMAND, home=tmp_path, ready=False) as peer:
        connect_with_roots(peer)

        assert "'own'" in grep_text(peer, 1)
        peer.close_input()
        assert peer.read_remaining() == []
        assert peer.wait_for_exit() == 0


def test_a_server_that_waits_for_roots_ends_with_its_input(tmp_path: Path) -> None:
    with start_server(*EXPLORE_COMMAND, home=tmp_path, ready=False) as peer:
        connect_with_roots(peer)
        assert peer.receive()["method"] == "roots/list"
        peer.send_call(1, "grep_code", pattern="x")
        peer.close_input()

        assert [frame["id"] for frame in peer.read_remaining()] == [1]
        assert peer.wait_for_exit() == 0
