"""The fake OpenSearch of the tests answers as the real one: the same requests, sent to both."""

import json
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.code.sharing.opensearch.documents import list_other_chars
from cleats.toolsets.code.sharing.opensearch.regexes import translate_pattern
from conformance.opensearch.requests import record_requests
from tests.engines.opensearch_relay import borrow_cluster
from tests.support.opensearch_queries import compile_lucene_regex
from tests.support.opensearch_server import FakeOpenSearch
from tests.support.opensearch_traffic import ClusterRequest, ObservedOpenSearch
from tests.toolsets.code.sharing.test_opensearch_filters import PATH_PATTERNS, PATH_VALUES

INDEX = "cleats-compared"
MAPPINGS: dict[str, Any] = {
    "dynamic": "strict",
    "_source": {"includes": ["at"]},
    "_meta": {},
    "properties": {
        "at": {"type": "long"},
        "word": {"type": "keyword", "ignore_above": 10},
        "path": {"type": "wildcard", "ignore_above": 10, "doc_values": True},
    },
}
SETTINGS = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1", "max_regex_length": 1000}
CREATED = {"settings": {"index": SETTINGS}, "mappings": MAPPINGS}

REMOVED_STRICTLY = {"remove": {"index": INDEX, "alias": "cleats-x", "must_exist": True}}

REFUSED_REQUESTS: list[tuple[str, str, Any]] = [
    ("PUT", "/Upper", CREATED),
    ("PUT", f"/{INDEX}", CREATED),
    ("PUT", f"/{INDEX}-2", {**CREATED, "settings": {"index": {**SETTINGS, "shards": 1}}}),
    ("PUT", f"/{INDEX}-2", {**CREATED, "mappings": {**MAPPINGS, "properties": {"x": {"type": "txt"}}}}),
    ("PUT", f"/{INDEX}-2", {**CREATED, "mappings": {**MAPPINGS, "properties": {"x": {"type": "long", "size": 1}}}}),
    ("GET", "/cleats-nothing", None),
    ("DELETE", "/cleats-nothing", None),
    ("GET", "/cleats-nothing/_count", None),
    ("POST", "/cleats-nothing/_refresh", None),
    ("POST", "/_aliases", {"actions": [{"add": {"index": "cleats-nothing", "alias": "cleats-x"}}]}),
    ("POST", "/_aliases", {"actions": [{"remove": {"index": INDEX, "alias": "cleats-x"}}]}),
    ("POST", "/_aliases", {"actions": [REMOVED_STRICTLY, {"add": {"index": INDEX, "alias": "cleats-y"}}]}),
]
REFUSED_DOCUMENTS: list[tuple[str, Any]] = [
    ("a field that is not mapped", {"other": 1}),
    ("a text for a number", {"at": "x"}),
    ("a value that is too long for a term", {"word": "x" * 40_000}),
    ("a value that is not kept", {"word": "x" * 11}),
    ("a good document", {"at": 1, "word": ["a", "b"], "path": "\x02x\x03"}),
]
REFUSED_QUERIES: list[Any] = [
    {"unknown": {}},
    {"term": {"word": {"value": "a", "other": 1}}},
    {"regexp": {"path": {"value": "(", "flags": "NONE"}}},
    {"regexp": {"path": {"value": "a" * 1001, "flags": "NONE"}}},
    {"bool": {"should": [{"term": {"word": {"value": str(number)}}} for number in range(1100)]}},
]


def test_every_recorded_request_gets_the_same_status_and_the_same_hits_from_both(opensearch_home: Path) -> None:
    requests = record_requests()
    fake = FakeOpenSearch()
    with borrow_cluster(opensearch_home) as real:
        for request in requests:
            expected, got = fake.answer_request(request), real.answer_request(request)
            assert _summarize_answer(got) == _summarize_answer(expected), f"{request.method} {request.path}"


def _summarize_answer(answer: tuple[int, Any]) -> Any:
    """Return what Cleats reads from an answer, except scores: those are compared as order."""
    status, body = answer
    if "responses" in body:
        return [_summarize_search(response) for response in body["responses"]]
    if "docs" in body:
        return status, [(item["_id"], item["found"], item.get("_source")) for item in body["docs"]]
    if "items" in body:
        return status, body["errors"], [item["index"]["status"] // 100 for item in body["items"]]
    if "count" in body:
        return status, body["count"], body["_shards"]["failed"]
    described = {name: item for name, item in body.items() if isinstance(item, dict) and "mappings" in item}
    metas = {name: item["mappings"]["_meta"] for name, item in described.items()}
    return status, metas, {name: sorted(item.get("aliases", {})) for name, item in described.items()}


def _summarize_search(response: Any) -> Any:
    if "error" in response:
        return response["status"]
    hits = {hit["_id"]: hit["_source"] for hit in response["hits"]["hits"]}
    return response["hits"].get("total"), response["_shards"]["failed"], hits


@pytest.mark.parametrize("request_parts", REFUSED_REQUESTS, ids=lambda parts: f"{parts[0]} {parts[1]}")
def test_what_the_fake_refuses_the_real_one_refuses_with_the_same_status(
    opensearch_home: Path, request_parts: tuple[str, str, Any]
) -> None:
    fake = FakeOpenSearch()
    with borrow_cluster(opensearch_home) as real:
        statuses = []
        for cluster in (fake, real):
            cluster.ask("PUT", f"/{INDEX}", CREATED)
            statuses.append(_send_request(cluster, *request_parts)[0])
    assert statuses[0] == statuses[1] >= 400


def test_both_ignore_a_removal_that_finds_nothing_if_another_action_has_an_effect(opensearch_home: Path) -> None:
    actions = [
        {"remove": {"index": INDEX, "alias": "cleats-x"}},
        {"add": {"index": INDEX, "alias": "cleats-y"}},
    ]
    with borrow_cluster(opensearch_home) as real:
        for cluster in (FakeOpenSearch(), real):
            cluster.ask("PUT", f"/{INDEX}", CREATED)
            cluster.ask("POST", "/_aliases", {"actions": actions})
            assert cluster.list_aliases(INDEX) == {"cleats-y"}


@pytest.mark.parametrize("document", REFUSED_DOCUMENTS, ids=lambda document: document[0])
def test_a_document_is_taken_by_both_or_by_none(opensearch_home: Path, document: tuple[str, Any]) -> None:
    fake = FakeOpenSearch()
    with borrow_cluster(opensearch_home) as real:
        statuses = []
        for cluster in (fake, real):
            cluster.ask("PUT", f"/{INDEX}", CREATED)
            lines = [{"index": {"_id": "1"}}, document[1]]
            body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            request = ClusterRequest("POST", f"/{INDEX}/_bulk", {}, {"content-type": "application/x-ndjson"}, body)
            [item] = cluster.answer_request(request)[1]["items"]
            statuses.append(item["index"]["status"])
    assert statuses[0] == statuses[1]


@pytest.mark.parametrize("query", REFUSED_QUERIES, ids=lambda query: str(query)[:40])
def test_a_query_that_the_fake_refuses_the_real_one_refuses(opensearch_home: Path, query: Any) -> None:
    fake = FakeOpenSearch()
    with borrow_cluster(opensearch_home) as real:
        statuses = []
        for cluster in (fake, real):
            cluster.ask("PUT", f"/{INDEX}", CREATED)
            answer = _search_all(cluster, [query])
            statuses.append((answer.get("status"), [response["status"] for response in answer.get("responses", ())]))
    assert statuses[0] == statuses[1]
    assert 400 in (statuses[0][0], *statuses[0][1])


def _send_request(cluster: ObservedOpenSearch, method: str, path: str, body: Any) -> tuple[int, Any]:
    data = b"" if body is None else json.dumps(body).encode()
    return cluster.answer_request(ClusterRequest(method, path, {}, {}, data))


def _search_all(cluster: ObservedOpenSearch, queries: list[Any]) -> Any:
    lines = [line for query in queries for line in ({}, {"query": query, "size": 10_000})]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    headers = {"content-type": "application/x-ndjson"}
    return cluster.answer_request(ClusterRequest("POST", f"/{INDEX}/_msearch", {}, headers, body))[1]


def test_an_expression_fits_in_lucene_what_python_finds(opensearch_home: Path) -> None:
    expressions = [translate_pattern(pattern, list_other_chars(PATH_VALUES)) for pattern in PATH_PATTERNS]
    with borrow_cluster(opensearch_home) as real:
        mappings = {
            **MAPPINGS,
            "properties": {**MAPPINGS["properties"], "path": {"type": "wildcard", "doc_values": True}},
        }
        settings = {"index": {**SETTINGS, "max_regex_length": 100_000}}
        real.ask("PUT", f"/{INDEX}", {"settings": settings, "mappings": mappings})
        lines = [
            line
            for number, value in enumerate(PATH_VALUES)
            for line in ({"index": {"_id": str(number)}}, {"at": number, "path": f"\x02{value}\x03"})
        ]
        body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        headers = {"content-type": "application/x-ndjson"}
        real.answer_request(ClusterRequest("POST", f"/{INDEX}/_bulk", {}, headers, body))
        real.ask("POST", f"/{INDEX}/_refresh")
        queries = [{"regexp": {"path": {"value": expression, "flags": "NONE"}}} for expression in expressions]
        responses = _search_all(real, queries)["responses"]
    wrong = []
    for pattern, expression, response in zip(PATH_PATTERNS, expressions, responses, strict=True):
        fits = compile_lucene_regex(expression)
        found = {int(hit["_id"]) for hit in response["hits"]["hits"]} if "hits" in response else response
        expected = {number for number, value in enumerate(PATH_VALUES) if pattern.search(value)}
        assert expected == {number for number, value in enumerate(PATH_VALUES) if fits(f"\x02{value}\x03")}
        if found != expected:
            wrong.append((pattern.pattern, found))
    assert wrong == []
