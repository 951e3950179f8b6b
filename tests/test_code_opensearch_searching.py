"""Searches in a cluster: answered as on one machine, or an error that says what to do."""

import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import SettingError, Settings
from cleats.toolsets.code.opensearch import remote as remotely
from cleats.toolsets.code.opensearch.cluster import Place, place
from cleats.toolsets.code.opensearch.remote import Remote
from cleats.toolsets.code.opensearch.remote import remote as made
from cleats.toolsets.code.opensearch.together import Together
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.output import payload
from cleats.toolsets.code.search.request import Request as Search
from cleats.toolsets.code.search.request import read
from tests.opensearch import OpenSearch, Request, basic, opensearch
from tests.opensearch_world import answer, names, publish, remote
from tests.search_world import File, build, shop

GENERATION, NEXT = "000001-0badcafe", "000002-0badcafe"

QUESTIONS: list[dict[str, Any]] = [
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
    {"query": "cart", "branch": "other"},
    {"query": "cart", "calls": "nobody", "lang": "py"},
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shop, and a test of it, which ranks lower."""
    test = File("tests/test_cart.py", "def test_cart():\n    Cart().add(item)\n")
    test.piece("function", "test_cart", test.text.rstrip())
    other = File("src/shop/other.py", "def add(cart):\n    return cart.add\n")
    other.piece("function", "add", other.text.rstrip())
    return build(tmp_path_factory.mktemp("world") / GENERATION, [*shop(), test, other])


@pytest.fixture(scope="module")
def engine(world: Path) -> Engine:
    return Engine.open(world)


@pytest.fixture(scope="module")
def shared(world: Path) -> Iterator[OpenSearch]:
    with opensearch() as running:
        publish(running, world, shards=3)
        yield running


@pytest.fixture
def cluster(world: Path) -> Iterator[OpenSearch]:
    with opensearch() as running:
        publish(running, world)
        running.seen.clear()
        yield running


@pytest.mark.parametrize("output", ["compact", "full"])
@pytest.mark.parametrize("given", QUESTIONS, ids=lambda each: str(each)[:50])
def test_an_answer_is_that_of_one_machine(
    engine: Engine, shared: OpenSearch, given: dict[str, Any], output: str
) -> None:
    asked = {"mode": "all", **given, "output": output, "explain": output == "full"}

    here = payload(engine, engine.search(read(asked, tests_lower=True)))
    there = answer(remote(shared), **asked)

    assert there["backend"] == "opensearch"
    assert comparable(there) == comparable(here)


def comparable(answered: dict[str, Any]) -> Any:
    """An answer without what may differ: the name of the backend, and how words were scored.

    OpenSearch counts how rare a word is among the chunks that have the field at all, and its
    releases differ by a constant factor; ranks are the same here, so points are too.
    """
    said = {**answered, "backend": None}
    for note in said["stats"].get("filters", []):
        note.pop("known", None)
    for note in said["stats"].get("notes", []):
        note["message"] = note["message"].partition(" There is")[0]
    for mode in ("code", "prose", "extractedProse", "records"):
        for hit in said[mode]:
            hit.pop("sparseScore", None)
            for part in hit.get("scoreBreakdown", {}).get("parts", []):
                part["score"] = None if part["name"] != "meaning" else part["score"]
    return said


def test_scores_do_not_depend_on_where_documents_happen_to_lie(
    world: Path, shared: OpenSearch, cluster: OpenSearch
) -> None:
    for query in ("cart", "parse error", "price of an item"):
        many, one = (answer(remote(each), query=query, output="full") for each in (shared, cluster))

        assert many == one


def test_a_search_is_two_requests_and_one_more_for_a_new_generation(cluster: OpenSearch) -> None:
    searched = remote(cluster, pause=600)

    names(searched, "cart")
    names(searched, "cart")

    asked = [each.path.rpartition("/")[2] for each in cluster.seen]
    assert asked == ["_mapping", "_msearch", "_mget", "_msearch", "_mget"]


def test_a_name_nobody_published_is_no_index_and_says_how_to_make_one(
    cluster: OpenSearch,
) -> None:
    with pytest.raises(ToolError) as caught:
        answer(remote(cluster, name="other"), query="cart")

    assert caught.value.code is ErrorCode.NO_INDEX
    assert "cleats worker" in caught.value.hint


def test_an_index_of_another_version_is_none(cluster: OpenSearch) -> None:
    [index] = cluster.indexes.values()
    index.mappings["_meta"]["cleats"]["form"] = "0.0.0"

    with pytest.raises(ToolError, match="another version") as caught:
        answer(remote(cluster), query="cart")

    assert caught.value.code is ErrorCode.NO_INDEX


def test_a_cluster_out_of_reach_is_unavailable_for_now() -> None:
    where = Place("http://127.0.0.1:9", pause=0.001)
    nowhere = Remote(where, where.verified(), "shop", False, Path("/"), 0)

    with pytest.raises(ToolError) as caught:
        answer(nowhere, query="cart")

    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert caught.value.retryable
    assert "127.0.0.1" not in caught.value.message


def test_a_cluster_that_says_nothing_is_given_up_in_time(
    cluster: OpenSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(remotely, "TIMEOUT", 0.05)
    cluster.faults = [lambda _: (0, ended.wait(30))]
    try:
        with pytest.raises(ToolError, match=r"no answer in 0\.05 s|Timeout") as caught:
            answer(remote(cluster), query="cart")
    finally:
        ended.set()

    assert caught.value.code is ErrorCode.UNAVAILABLE


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_cluster_that_stays_unwell_is_unavailable(cluster: OpenSearch, status: int) -> None:
    cluster.faults = [lambda _: (status, {"error": {"type": "x", "reason": "unwell"}})]

    with pytest.raises(ToolError) as caught:
        answer(remote(cluster), query="cart")

    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert caught.value.retryable


def test_a_search_is_sent_again_when_the_cluster_was_busy_once(cluster: OpenSearch) -> None:
    def once(request: Request) -> tuple[int, Any] | None:
        if not request.path.endswith("_msearch"):
            return None
        cluster.faults = []
        return 503, {}

    cluster.faults = [once]

    assert names(remote(cluster), "Cart.add")[0] == "Cart.add"


def test_half_an_answer_is_no_answer(cluster: OpenSearch) -> None:
    def half(request: Request) -> tuple[int, Any] | None:
        if not request.path.endswith("_msearch"):
            return None
        cluster.faults = []
        status, body = cluster.answer(request)
        body["responses"][1]["_shards"]["failed"] = 1
        return status, body

    cluster.faults = [half]

    with pytest.raises(ToolError, match="1 of 1 shards") as caught:
        answer(remote(cluster), query="cart")

    assert caught.value.code is ErrorCode.UNAVAILABLE


def test_what_the_cluster_finds_too_complex_is_the_callers_to_change(cluster: OpenSearch) -> None:
    [index] = cluster.indexes.values()
    index.settings["max_regex_length"] = 3
    index.searchers.clear()

    with pytest.raises(ToolError, match="longer than the maximum") as caught:
        answer(remote(cluster), query="cart", path="src/**")

    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_an_index_that_goes_away_under_a_search_is_looked_up_again(
    cluster: OpenSearch, tmp_path: Path
) -> None:
    searched = remote(cluster, pause=600)
    names(searched, "cart")
    publish(cluster, build(tmp_path / NEXT, shop()[:1]))
    del cluster.indexes[next(iter(cluster.indexes))]

    assert names(searched, "runCommand")[0] == "runCommand"
    assert names(searched, "HTTPStore", ann=False) == []


def test_an_index_that_goes_away_before_its_hits_are_read_is_looked_up_again(
    cluster: OpenSearch,
) -> None:
    searched = remote(cluster, pause=600)
    names(searched, "cart")

    def lose(request: Request) -> tuple[int, Any] | None:
        if not request.path.endswith("_mget"):
            return None
        cluster.faults = []
        missing = {"type": "index_not_found_exception", "reason": "no such index"}
        return 200, {"docs": [{"_id": each, "error": missing} for each in request.json["ids"]]}

    cluster.faults = [lose]

    assert names(searched, "Cart.add")[0] == "Cart.add"


def test_a_new_generation_is_noticed_after_the_pause(cluster: OpenSearch, tmp_path: Path) -> None:
    patient, eager = remote(cluster, pause=600), remote(cluster, pause=0)
    for each in (patient, eager):
        assert "HTTPStore" in names(each, "HTTPStore")

    publish(cluster, build(tmp_path / NEXT, shop()[:1]))

    assert "HTTPStore" in names(patient, "HTTPStore")
    assert "HTTPStore" not in names(eager, "HTTPStore")


def test_indexes_of_several_builders_are_one_corpus(cluster: OpenSearch, tmp_path: Path) -> None:
    docs = build(tmp_path / GENERATION, [file for file in shop() if file.lang == "markdown"])
    publish(cluster, docs, name="manual")
    both = together(cluster, tmp_path, "shop", "manual")

    found = answer(both, query="cart", output="full", mode="all")

    assert isinstance(both, Together)
    assert {hit["repo"] for hit in found["code"]} == {"shop"}
    twice = sorted(hit["repo"] for hit in found["prose"] if hit["name"] == "Buying")
    assert twice == ["manual", "shop"]
    assert [each["alias"] for each in found["stats"]["repos"]] == ["shop", "manual"]
    scores = [hit["score"] for hit in found["prose"]]
    assert scores == sorted(scores, reverse=True)


def test_a_corpus_that_lacks_an_index_is_not_searched_in_part(
    cluster: OpenSearch, tmp_path: Path
) -> None:
    both = together(cluster, tmp_path, "shop", "nobody")

    with pytest.raises(ToolError, match="nobody") as caught:
        answer(both, query="cart")
    with pytest.raises(ToolError) as refused:
        both.refuse_build(Repository(tmp_path))

    assert caught.value.code is ErrorCode.NO_INDEX
    assert refused.value.code is ErrorCode.FORBIDDEN


def together(cluster: OpenSearch, root: Path, *names: str) -> Remote | Together:
    given = Settings(opensearch_url=cluster.base, opensearch_indexes=names, index_poll=0)
    return made(given, Repository(root))


def test_who_one_is_goes_with_every_request_and_into_no_message(cluster: OpenSearch) -> None:
    cluster.wants = basic("reader", "hush")

    found = names(remote(cluster, user="reader", password="hush"), "Cart.add")
    with pytest.raises(ToolError) as caught:
        answer(remote(cluster, user="reader", password="wrong-hush"), query="cart")

    assert found[0] == "Cart.add"
    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert not caught.value.retryable
    assert "opensearch_password" in caught.value.hint
    assert "hush" not in str(caught.value.as_json())
    assert "hush" not in repr(remote(cluster, user="reader", password="hush"))


def test_a_token_is_sent_as_one(cluster: OpenSearch) -> None:
    cluster.wants = "Bearer secret"

    assert names(remote(cluster, token="secret"), "Cart.add")[0] == "Cart.add"


def test_a_redirect_is_not_followed_with_a_password(cluster: OpenSearch) -> None:
    cluster.faults = [lambda _: (302, {})]

    with pytest.raises(ToolError, match="302"):
        answer(remote(cluster, user="reader", password="hush"), query="cart")

    assert len(cluster.seen) == 1


def test_a_search_that_is_cancelled_lets_go_of_the_cluster(cluster: OpenSearch) -> None:
    reached, ended = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        if request.path.endswith("_msearch"):
            reached.set()
            ended.wait(30)

    def make() -> Search:
        return read({"query": "cart"})

    async def cancelled() -> bool:
        async with anyio.create_task_group() as group:
            group.start_soon(remote(cluster).search, make)
            await anyio.to_thread.run_sync(reached.wait, 30)
            group.cancel_scope.cancel()
        return group.cancel_scope.cancelled_caught

    cluster.faults = [hold]
    try:
        assert anyio.run(cancelled)
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
        place(Settings(opensearch_url=url))

    assert "hush" not in str(caught.value)


def test_a_certificate_is_checked_with_what_the_operator_says(tmp_path: Path) -> None:
    own = tmp_path / "own.pem"
    own.write_text("nothing")

    assert Place("https://host").verified().verify_mode is ssl.CERT_REQUIRED
    with pytest.raises(ssl.SSLError):
        Place("https://host", authorities=str(own)).verified()
