"""Tests of both protocol eras on one server: 2025-11-25 and 2026-07-28."""

from pathlib import Path
from typing import Any

from tests.support.mcp_client import ENVELOPE_META, INITIALIZE_PARAMS, ServerPeer, start_server


def send_modern_request(peer: ServerPeer, request_id: Any, method: str, **params: Any) -> dict[str, Any]:
    peer.send_request(request_id, method, {**params, "_meta": {**ENVELOPE_META, **params.get("_meta", {})}})
    return peer.wait_for_answer(request_id)


def test_a_stateless_client_needs_no_handshake(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        answer = send_modern_request(peer, 1, "tools/call", name="echo", arguments={"text": "x"})["result"]

    assert answer["resultType"] == "complete"
    assert answer["isError"] is False
    assert answer["structuredContent"]["result"] == {"text": "x", "n": 1}
    assert answer["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "cleats"


def test_discovery_carries_the_same_capability_block(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        result = send_modern_request(peer, 1, "server/discover")["result"]

    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"]["experimental"]["pairofcleats"]["transport"] == "sdk"
    assert result["capabilities"]["tools"] == {"listChanged": True}


def test_a_stateless_list_says_how_long_it_may_be_kept(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        result = send_modern_request(peer, 1, "tools/list")["result"]

    assert result["resultType"] == "complete"
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
    assert "echo" in {tool["name"] for tool in result["tools"]}


def test_an_envelope_for_another_version_names_the_ones_we_have(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        meta = {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        error = send_modern_request(peer, 1, "tools/list", _meta=meta)["error"]

    assert error["code"] == -32022
    assert error["data"]["supported"] == ["2026-07-28"]
    assert error["data"]["code"] == "INVALID_REQUEST"


def test_a_handshake_on_a_stateless_connection_is_refused(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        send_modern_request(peer, 1, "tools/list")
        peer.send_request(2, "initialize", INITIALIZE_PARAMS)

        assert peer.wait_for_answer(2)["error"]["code"] == -32022


def test_an_envelope_on_a_handshake_connection_is_refused(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        error = send_modern_request(peer, 1, "tools/list")["error"]

    assert (error["code"], error["data"]["code"]) == (-32600, "INVALID_REQUEST")


def test_a_stateless_client_hears_of_changes_on_the_stream_it_opened(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        subscription_params = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE_META}
        peer.send_request("listen", "subscriptions/listen", subscription_params)
        acknowledged = peer.receive()
        send_modern_request(peer, 2, "tools/call", name="grow", arguments={})
        change_message = peer.receive()

    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert change_message["method"] == "notifications/tools/list_changed"
    subscription = change_message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
    assert subscription == "listen"


def test_a_stream_ends_quietly_when_it_is_cancelled(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        subscription_params = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE_META}
        peer.send_request("listen", "subscriptions/listen", subscription_params)
        peer.receive()
        peer.send_notification("notifications/cancelled", {"requestId": "listen"})
        send_modern_request(peer, 2, "tools/call", name="grow", arguments={})
        peer.close_input()

        assert peer.read_remaining() == []
        assert peer.wait_for_exit() == 0


def test_an_open_stream_is_closed_gracefully_when_the_server_stops(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        subscription_params = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE_META}
        peer.send_request("listen", "subscriptions/listen", subscription_params)
        peer.receive()
        peer.close_input()
        [last] = peer.read_remaining()

        assert last["id"] == "listen"
        assert last["result"]["resultType"] == "complete"
        assert peer.wait_for_exit() == 0
