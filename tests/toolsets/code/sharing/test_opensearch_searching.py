"""Searches in a cluster: answered as on one machine, or an error that tells what to do."""

import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import SettingError, make_settings
from cleats.toolsets.code.query.request import SearchRequest as Search
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from cleats.toolsets.code.sharing.opensearch import remote_index as remotely
from cleats.toolsets.code.sharing.opensearch.cluster import ClusterAddress, read_cluster_address
from cleats.toolsets.code.sharing.opensearch.remote_index import RemoteIndex, RemoteIndexGroup
from cleats.toolsets.code.sharing.opensearch.remote_index import open_remote_index as made
from tests.support.opensearch_clients import open_remote_index, publish_generation, run_search, search_names
from tests.support.opensearch_server import run_opensearch
from tests.support.opensearch_traffic import ClusterRequest, ObservedOpenSearch, encode_basic_auth
from tests.support.search import ShopFile, build_generation, build_shop_files

FIRST_GENERATION, NEXT_GENERATION = "000001-0badcafe", "000002-0badcafe"

SEARCH_REQUESTS: list[dict[str, Any]] = [
    {"query": "cart"},
    {"query": "Cart.add"},
    {"query": "add"},
    {"query": "cart.py"},
    {"query": "parse error"},
    {"query": '"parse error"'},
    {"query": '"no such phrase" cart'},
    {"query": "where are prices fetched?"},
    {"query": "runCommand"},
    {"query": "load -store"},
    {"query": "cart AND (total OR items) AND NOT shell"},
    {"query": "HTTPStore", "caseTokens": True},
    {"query": "httpstore", "caseTokens": True},
    {"query": "customer buys things", "ann": False},
    {"query": "customer", "path": "docs/**", "context": 2},
    {"query": "finding", "mode": "records"},
    {"query": "cart", "top": 2},
    {"query": "*", "type": "method"},
    {"query": "*", "modifiedAfter": "2000-01-01"},
    {"query": "*", "riskTag": "command"},
    {"query": "fix the wrong total price of a cart with many items"},
    {"query": "why is the deprecated generated store of the shop loaded"},
    {"query": "cart", "branch": "other"},
    {"query": "cart", "calls": "nobody", "lang": "py"},
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the shop with a test of it, which ranks lower."""
    test = ShopFile("tests/test_cart.py", "def test_cart():\n    Cart().add(item)\n")
    test.add_chunk("function", "test_cart", test.text.rstrip())
    other = ShopFile("src/shop/other.py", "def add(cart):\n    return cart.add\n")
    other.add_chunk("function", "add", other.text.rstrip())
    return build_generation(tmp_path_factory.mktemp("world") / FIRST_GENERATION, [*build_shop_files(), test, other])


@pytest.fixture(scope="module")
def engine(world: Path) -> SearchEngine:
    return SearchEngine.open(world)


@pytest.fixture(scope="module")
def shared_cluster(world: Path) -> Iterator[ObservedOpenSearch]:
    with run_opensearch() as running:
        publish_generation(running, world, shards=3)
        yield running


@pytest.fixture
def cluster(world: Path) -> Iterator[ObservedOpenSearch]:
    with run_opensearch() as running:
        publish_generation(running, world)
        running.requests.clear()
        yield running


@pytest.mark.parametrize("output", ["compact", "full"])
@pytest.mark.parametrize("arguments", SEARCH_REQUESTS, ids=lambda parameter: str(parameter)[:50])
def test_an_answer_is_that_of_one_machine(
    engine: SearchEngine, shared_cluster: ObservedOpenSearch, arguments: dict[str, Any], output: str
) -> None:
    search_arguments = {"mode": "all", **arguments, "output": output, "explain": output == "full"}

    here = render_answer(engine, search_generation(engine, parse_request(search_arguments, demote_tests=True)))
    there = run_search(open_remote_index(shared_cluster), **search_arguments)

    assert there["backend"] == "opensearch"
    assert make_comparable(there) == make_comparable(here)


def make_comparable(response: dict[str, Any]) -> Any:
    """Drop from an answer what may differ: the name of the backend, and how words were scored.

    OpenSearch counts how rare a word is among the chunks that have the field at all, and its
    releases differ by a constant factor; ranks are the same here, so points are too.
    """
    comparable_answer = {**response, "backend": None}
    for note in comparable_answer["stats"].get("filters", []):
        note.pop("known", None)
    for note in comparable_answer["stats"].get("notes", []):
        note["message"] = note["message"].partition(" There is")[0]
    for mode in ("code", "prose", "extractedProse", "records"):
        for hit in comparable_answer[mode]:
            hit.pop("sparseScore", None)
            for part in hit.get("scoreBreakdown", {}).get("parts", []):
                part["score"] = None if part["name"] != "meaning" else part["score"]
    return comparable_answer


def test_scores_do_not_depend_on_where_documents_happen_to_lie(
    world: Path, shared_cluster: ObservedOpenSearch, cluster: ObservedOpenSearch
) -> None:
    for query in ("cart", "parse error", "price of an item"):
        sharded, unsharded = (
            run_search(open_remote_index(searched_cluster), query=query, output="full")
            for searched_cluster in (shared_cluster, cluster)
        )

        assert sharded == unsharded


def test_a_search_is_three_requests_and_one_more_for_a_new_generation(cluster: ObservedOpenSearch) -> None:
    searched = open_remote_index(cluster, pause=600)

    search_names(searched, "cart")
    search_names(searched, "cart")

    endpoints = [request.path.rpartition("/")[2] for request in cluster.requests]
    assert endpoints == ["_mapping", *2 * ["_mget", "_msearch", "_mget"]]


def test_a_name_nobody_published_is_no_index_and_says_how_to_make_one(
    cluster: ObservedOpenSearch,
) -> None:
    with pytest.raises(ToolError) as caught:
        run_search(open_remote_index(cluster, name="other"), query="cart")

    assert caught.value.code is ErrorCode.NO_INDEX
    assert "cleats worker" in caught.value.hint


def test_an_index_of_another_version_is_none(cluster: ObservedOpenSearch) -> None:
    [index] = cluster.index_names
    cluster.write_meta(index, form="0.0.0")

    with pytest.raises(ToolError, match="another version") as caught:
        run_search(open_remote_index(cluster), query="cart")

    assert caught.value.code is ErrorCode.NO_INDEX


def test_a_cluster_out_of_reach_is_unavailable_for_now() -> None:
    where = ClusterAddress("http://127.0.0.1:9", pause=0.001)
    nowhere = RemoteIndex(where, where.create_ssl_context(), "shop", False, Path("/"), 0)

    with pytest.raises(ToolError) as caught:
        run_search(nowhere, query="cart")

    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert caught.value.retryable
    assert "127.0.0.1" not in caught.value.message


def test_a_cluster_that_says_nothing_is_given_up_in_time(
    cluster: ObservedOpenSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(remotely, "SEARCH_TIMEOUT_SECONDS", 0.05)
    cluster.faults = [lambda _: (0, ended.wait(30))]
    try:
        with pytest.raises(ToolError, match=r"no answer in 0\.05 s|Timeout") as caught:
            run_search(open_remote_index(cluster), query="cart")
    finally:
        ended.set()

    assert caught.value.code is ErrorCode.UNAVAILABLE


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_cluster_that_stays_unwell_is_unavailable(cluster: ObservedOpenSearch, status: int) -> None:
    cluster.faults = [lambda _: (status, {"error": {"type": "x", "reason": "unwell"}})]

    with pytest.raises(ToolError) as caught:
        run_search(open_remote_index(cluster), query="cart")

    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert caught.value.retryable


def test_a_search_is_sent_again_when_the_cluster_was_busy_once(cluster: ObservedOpenSearch) -> None:
    def fail_once(request: ClusterRequest) -> tuple[int, Any] | None:
        if not request.path.endswith("_msearch"):
            return None
        cluster.faults = []
        return 503, {}

    cluster.faults = [fail_once]

    assert search_names(open_remote_index(cluster), "Cart.add")[0] == "Cart.add"


def test_half_an_answer_is_no_answer(cluster: ObservedOpenSearch) -> None:
    def fail_shard(request: ClusterRequest) -> tuple[int, Any] | None:
        if not request.path.endswith("_msearch"):
            return None
        cluster.faults = []
        status, body = cluster.answer_request(request)
        body["responses"][1]["_shards"]["failed"] = 1
        return status, body

    cluster.faults = [fail_shard]

    with pytest.raises(ToolError, match="1 of 1 shards") as caught:
        run_search(open_remote_index(cluster), query="cart")

    assert caught.value.code is ErrorCode.UNAVAILABLE


def test_what_the_cluster_finds_too_complex_is_the_callers_to_change(cluster: ObservedOpenSearch) -> None:
    [index] = cluster.index_names
    cluster.ask("PUT", f"/{index}/_settings", {"index": {"max_regex_length": 3}})

    with pytest.raises(ToolError, match="exceeded the allowed maximum") as caught:
        run_search(open_remote_index(cluster), query="cart", path="src/**")

    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_an_index_that_goes_away_under_a_search_is_looked_up_again(cluster: ObservedOpenSearch, tmp_path: Path) -> None:
    searched = open_remote_index(cluster, pause=600)
    search_names(searched, "cart")
    publish_generation(cluster, build_generation(tmp_path / NEXT_GENERATION, build_shop_files()[:1]))
    cluster.remove_index(cluster.index_names[0])

    assert search_names(searched, "runCommand")[0] == "runCommand"
    assert search_names(searched, "HTTPStore", ann=False) == []


def test_an_index_that_goes_away_before_its_hits_are_read_is_looked_up_again(
    cluster: ObservedOpenSearch,
) -> None:
    searched = open_remote_index(cluster, pause=600)
    search_names(searched, "cart")

    def lose_index(request: ClusterRequest) -> tuple[int, Any] | None:
        if not request.path.endswith("_mget"):
            return None
        cluster.faults = []
        missing = {"type": "index_not_found_exception", "reason": "no such index"}
        return 200, {"docs": [{"_id": document_id, "error": missing} for document_id in request.json["ids"]]}

    cluster.faults = [lose_index]

    assert search_names(searched, "Cart.add")[0] == "Cart.add"


def test_a_new_generation_is_noticed_after_the_pause(cluster: ObservedOpenSearch, tmp_path: Path) -> None:
    patient, eager = open_remote_index(cluster, pause=600), open_remote_index(cluster, pause=0)
    for index in (patient, eager):
        assert "HTTPStore" in search_names(index, "HTTPStore")

    publish_generation(cluster, build_generation(tmp_path / NEXT_GENERATION, build_shop_files()[:1]))

    assert "HTTPStore" in search_names(patient, "HTTPStore")
    assert "HTTPStore" not in search_names(eager, "HTTPStore")


def test_indexes_of_several_builders_are_one_corpus(cluster: ObservedOpenSearch, tmp_path: Path) -> None:
    docs = build_generation(
        tmp_path / FIRST_GENERATION, [file for file in build_shop_files() if file.lang == "markdown"]
    )
    publish_generation(cluster, docs, name="manual")
    both = open_indexes(cluster, tmp_path, "shop", "manual")

    result = run_search(both, query="cart", output="full", mode="all")

    assert isinstance(both, RemoteIndexGroup)
    assert {hit["repo"] for hit in result["code"]} == {"shop"}
    twice = sorted(hit["repo"] for hit in result["prose"] if hit["name"] == "Buying")
    assert twice == ["manual", "shop"]
    assert [repo["alias"] for repo in result["stats"]["repos"]] == ["shop", "manual"]
    scores = [hit["score"] for hit in result["prose"]]
    assert scores == sorted(scores, reverse=True)


def test_a_corpus_that_lacks_an_index_is_not_searched_in_part(cluster: ObservedOpenSearch, tmp_path: Path) -> None:
    both = open_indexes(cluster, tmp_path, "shop", "nobody")

    with pytest.raises(ToolError, match="nobody") as caught:
        run_search(both, query="cart")
    with pytest.raises(ToolError) as refused:
        both.reject_build(Repository(tmp_path))

    assert caught.value.code is ErrorCode.NO_INDEX
    assert refused.value.code is ErrorCode.FORBIDDEN


def open_indexes(cluster: ObservedOpenSearch, root: Path, *names: str) -> RemoteIndex | RemoteIndexGroup:
    settings = make_settings(opensearch_url=cluster.base, opensearch_indexes=names, index_poll=0)
    return made(settings, Repository(root))


def test_who_one_is_goes_with_every_request_and_into_no_message(cluster: ObservedOpenSearch) -> None:
    cluster.required_authorization = encode_basic_auth("reader", "hush")

    hit_names = search_names(open_remote_index(cluster, user="reader", password="hush"), "Cart.add")
    with pytest.raises(ToolError) as caught:
        run_search(open_remote_index(cluster, user="reader", password="wrong-hush"), query="cart")

    assert hit_names[0] == "Cart.add"
    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert not caught.value.retryable
    assert "opensearch_password" in caught.value.hint
    assert "hush" not in str(caught.value.as_json())
    assert "hush" not in repr(open_remote_index(cluster, user="reader", password="hush"))


def test_a_token_is_sent_as_one(cluster: ObservedOpenSearch) -> None:
    cluster.required_authorization = "Bearer secret"

    assert search_names(open_remote_index(cluster, token="secret"), "Cart.add")[0] == "Cart.add"


def test_a_redirect_is_not_followed_with_a_password(cluster: ObservedOpenSearch) -> None:
    cluster.faults = [lambda _: (302, {})]

    with pytest.raises(ToolError, match="302"):
        run_search(open_remote_index(cluster, user="reader", password="hush"), query="cart")

    assert len(cluster.requests) == 1


def test_a_search_that_is_cancelled_lets_go_of_the_cluster(cluster: ObservedOpenSearch) -> None:
    reached, ended = threading.Event(), threading.Event()

    def hold_request(request: ClusterRequest) -> None:
        if request.path.endswith("_msearch"):
            reached.set()
            ended.wait(30)

    def make_search() -> Search:
        return parse_request({"query": "cart"})

    async def cancel_search() -> bool:
        async with anyio.create_task_group() as group:
            group.start_soon(open_remote_index(cluster).search, make_search)
            await anyio.to_thread.run_sync(reached.wait, 30)
            group.cancel_scope.cancel()
        return group.cancel_scope.cancelled_caught

    cluster.faults = [hold_request]
    try:
        assert anyio.run(cancel_search)
    finally:
        ended.set()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("opensearch:9200", "expected https"),
        ("ftp://host", "expected https"),
        ("https://me:hush@host:9200", "opensearch_password"),
        ("https://host/?x=1", "expected https"),
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str, why: str) -> None:
    with pytest.raises(SettingError, match=why) as caught:
        read_cluster_address(make_settings(opensearch_url=url))

    assert "hush" not in str(caught.value)


def test_a_certificate_is_checked_with_what_the_operator_says(tmp_path: Path) -> None:
    authority_file = tmp_path / "own.pem"
    authority_file.write_text("nothing")

    assert ClusterAddress("https://host").create_ssl_context().verify_mode is ssl.CERT_REQUIRED
    with pytest.raises(ssl.SSLError):
        ClusterAddress("https://host", authorities=str(authority_file)).create_ssl_context()
