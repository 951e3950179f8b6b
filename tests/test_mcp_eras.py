"""Both protocol eras on one server: the handshake of 2025-11-25 and the envelope of 2026-07-28."""

from pathlib import Path
from typing import Any

from tests.peer import ENVELOPE, INITIALIZE, Peer, started


def modern(peer: Peer, request_id: Any, method: str, **params: Any) -> dict[str, Any]:
    peer.request(request_id, method, {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}})
    return peer.answer(request_id)


def test_a_stateless_client_needs_no_handshake(tmp_path: Path) -> None:
    with started(home=tmp_path, ready=False) as peer:
        answer = modern(peer, 1, "tools/call", name="echo", arguments={"text": "x"})["result"]

    assert answer["resultType"] == "complete"
    assert answer["isError"] is False
    assert answer["structuredContent"]["result"] == {"text": "x", "n": 1}
    assert answer["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "cleats"


def test_discovery_carries_the_same_capability_block(tmp_path: Path) -> None:
    with started(home=tmp_path, ready=False) as peer:
        result = modern(peer, 1, "server/discover")["result"]

    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"]["experimental"]["pairofcleats"]["transport"] == "sdk"
    assert result["capabilities"]["tools"] == {"listChanged": True}


def test_a_stateless_list_says_how_long_it_may_be_kept(tmp_path: Path) -> None:
    with started(home=tmp_path, ready=False) as peer:
        result = modern(peer, 1, "tools/list")["result"]

    assert result["resultType"] == "complete"
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
    assert "echo" in {tool["name"] for tool in result["tools"]}


def test_an_envelope_for_another_version_names_the_ones_we_have(tmp_path: Path) -> None:
    with started(home=tmp_path, ready=False) as peer:
        meta = {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        error = modern(peer, 1, "tools/list", _meta=meta)["error"]

    assert error["code"] == -32022
    assert error["data"]["supported"] == ["2026-07-28"]
    assert error["data"]["code"] == "INVALID_REQUEST"


def test_a_handshake_on_a_stateless_connection_is_refused(tmp_path: Path) -> None:
    with started(home=tmp_path, ready=False) as peer:
        modern(peer, 1, "tools/list")
        peer.request(2, "initialize", INITIALIZE)

        assert peer.answer(2)["error"]["code"] == -32022


def test_an_envelope_on_a_handshake_connection_is_refused(tmp_path: Path) -> None:
    with started(home=tmp_path) as peer:
        error = modern(peer, 1, "tools/list")["error"]

    assert (error["code"], error["data"]["code"]) == (-32600, "INVALID_REQUEST")


def test_a_stateless_client_hears_of_changes_on_the_stream_it_opened(tmp_path: Path) -> None:
    with started(home=tmp_path, ready=False) as peer:
        wanted = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE}
        peer.request("listen", "subscriptions/listen", wanted)
        acknowledged = peer.receive()
        modern(peer, 2, "tools/call", name="grow", arguments={})
        changed = peer.receive()

    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert changed["method"] == "notifications/tools/list_changed"
    subscription = changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
    assert subscription == "listen"


def test_a_stream_ends_quietly_when_it_is_cancelled(tmp_path: Path) -> None:
    with started(home=tmp_path, ready=False) as peer:
        wanted = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE}
        peer.request("listen", "subscriptions/listen", wanted)
        peer.receive()
        peer.notify("notifications/cancelled", {"requestId": "listen"})
        modern(peer, 2, "tools/call", name="grow", arguments={})
        peer.end_input()

        assert peer.rest() == []
        assert peer.wait() == 0


def test_an_open_stream_is_closed_gracefully_when_the_server_stops(tmp_path: Path) -> None:
    with started(home=tmp_path, ready=False) as peer:
        wanted = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE}
        peer.request("listen", "subscriptions/listen", wanted)
        peer.receive()
        peer.end_input()
        [last] = peer.rest()

        assert last["id"] == "listen"
        assert last["result"]["resultType"] == "complete"
        assert peer.wait() == 0
