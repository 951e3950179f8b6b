"""Every argument that filters: what it includes and what it excludes, on every backend."""

import time
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.query.arguments import FILTER_ARGUMENTS
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search.engine import SearchEngine
from tests.support.indexes import IndexedRepository
from tests.support.requirements import requirement
from tests.support.search import DAY_SECONDS, SPRING_TIMESTAMP, build_generation, build_shop_files, search_names

BACKEND_NAMES = ("tantivy", "sqlite-fts", "memory")

CART_CHUNKS = {"cart", "Cart", "Cart.add", "Cart.total", "fetch_prices", "runCommand"}
STORE_CHUNKS = {"HTTPStore", "HTTPStore.load"}
GUIDE_CHUNKS = {"Buying", "Parsing errors"}
RECORD_CHUNKS = {"CVE-2026-0001"}
ALL_CHUNKS = CART_CHUNKS | STORE_CHUNKS | GUIDE_CHUNKS | RECORD_CHUNKS


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> SearchEngine:
    return SearchEngine.open(build_generation(tmp_path_factory.mktemp("world") / "one", build_shop_files()))


def find_passing_chunks(engine: SearchEngine, backend: str = "tantivy", **arguments: Any) -> set[str]:
    """Return the names of all chunks that pass: the hits of a query that is only a negation."""
    search_arguments = {"mode": "all", "top": 100, "backend": backend, **arguments}
    return set(search_names(engine, "-nowhere", **search_arguments))


SPRING_DAY, LATER_DAY = "2026-03-20", "2026-04-01"

FILTER_CASES: list[tuple[dict[str, Any], set[str]]] = [
    ({"path": "shop"}, CART_CHUNKS),
    ({"path": "SHOP"}, CART_CHUNKS),
    ({"path": "src/**/*.py"}, CART_CHUNKS),
    ({"path": "*.ts"}, STORE_CHUNKS),
    ({"path": "**/store.*"}, STORE_CHUNKS),
    ({"path": "src/*"}, set()),
    ({"path": "/^(?:docs|web)/"}, STORE_CHUNKS | GUIDE_CHUNKS),
    ({"path": "!docs/**"}, CART_CHUNKS | STORE_CHUNKS | RECORD_CHUNKS),
    ({"path": ["!docs", "!/^web/"]}, CART_CHUNKS | RECORD_CHUNKS),
    ({"path": ["src", "!cart"]}, STORE_CHUNKS),
    ({"path": "!/^(?:docs|web)/"}, CART_CHUNKS | RECORD_CHUNKS),
    ({"file": "!cart"}, STORE_CHUNKS | GUIDE_CHUNKS | RECORD_CHUNKS),
    ({"ext": "!py,!ts"}, GUIDE_CHUNKS | RECORD_CHUNKS),
    ({"ext": ["py", "!py"]}, set()),
    ({"path": ["docs/", "*.ts"]}, STORE_CHUNKS | GUIDE_CHUNKS),
    ({"path": "src", "file": "store.ts"}, STORE_CHUNKS),
    ({"path": "src", "ext": "py"}, CART_CHUNKS),
    ({"path": "Src", "caseFile": True}, set()),
    ({"path": "Src", "case": True}, set()),
    ({"path": "src", "case": True}, CART_CHUNKS | STORE_CHUNKS),
    ({"path": "./src/shop"}, CART_CHUNKS),
    ({"path": "src\\shop"}, CART_CHUNKS),
    ({"file": "cart"}, CART_CHUNKS),
    ({"file": "src"}, set()),
    ({"file": "src/"}, CART_CHUNKS | STORE_CHUNKS),
    ({"file": "c?rt.*"}, CART_CHUNKS),
    ({"file": "/\\.(?:md|ts)$/"}, STORE_CHUNKS | GUIDE_CHUNKS),
    ({"ext": "py"}, CART_CHUNKS),
    ({"ext": ".py"}, CART_CHUNKS),
    ({"ext": "*.py"}, CART_CHUNKS),
    ({"ext": "PY, md"}, CART_CHUNKS | GUIDE_CHUNKS),
    ({"ext": ["py", "ts"]}, CART_CHUNKS | STORE_CHUNKS),
    ({"ext": "t*"}, STORE_CHUNKS),
    ({"ext": "/^(?:py|md)$/"}, CART_CHUNKS | GUIDE_CHUNKS),
    ({"ext": "p"}, set()),
    ({"lang": "py"}, CART_CHUNKS),
    ({"lang": "Python"}, CART_CHUNKS),
    ({"lang": "ts,markdown"}, STORE_CHUNKS | GUIDE_CHUNKS),
    ({"type": "class"}, {"Cart", "HTTPStore"}),
    ({"type": "ClassDeclaration"}, {"Cart", "HTTPStore"}),
    ({"type": "class, module"}, {"Cart", "HTTPStore", "cart"}),
    ({"type": "Function"}, {"fetch_prices", "runCommand"}),
    ({"type": "comment"}, {"HTTPStore.load"}),
    ({"signature": "count: int"}, {"Cart.add"}),
    ({"signature": "Count: int"}, set()),
    ({"param": "url"}, {"fetch_prices"}),
    ({"param": "ur"}, set()),
    ({"param": "url,key"}, {"fetch_prices", "HTTPStore.load"}),
    ({"decorator": "PROP"}, {"Cart.total"}),
    ({"decorator": "cached"}, set()),
    ({"extends": "priced"}, {"Cart"}),
    ({"extends": "other"}, set()),
    ({"visibility": "private"}, {"HTTPStore.load"}),
    ({"visibility": "static"}, {"HTTPStore.load"}),
    ({"visibility": "export"}, {"runCommand"}),
    ({"inferredType": "item"}, {"Cart.add"}),
    ({"inferredType": "string"}, {"HTTPStore.load"}),
    ({"inferredType": "bytes"}, set()),
    ({"returnType": "decimal"}, {"Cart.total"}),
    ({"returnType": "str"}, set()),
    ({"async": True}, {"fetch_prices"}),
    ({"async": False}, ALL_CHUNKS),
    ({"generator": True}, {"fetch_prices"}),
    ({"returns": True}, {"Cart.total", "HTTPStore.load"}),
    ({"import": "werkzeug"}, CART_CHUNKS),
    ({"import": "werkzeug.datastructures"}, CART_CHUNKS),
    ({"import": "werk"}, set()),
    ({"import": "Werkzeug"}, set()),
    ({"import": "@shop/core"}, STORE_CHUNKS),
    ({"import": "decimal,./items"}, CART_CHUNKS | STORE_CHUNKS),
    ({"calls": "append"}, {"Cart.add"}),
    ({"calls": "items.append"}, {"Cart.add"}),
    ({"calls": "self.items.append"}, {"Cart.add"}),
    ({"calls": "get"}, {"fetch_prices", "runCommand", "HTTPStore.load"}),
    ({"calls": "session.get"}, {"fetch_prices"}),
    ({"calls": "total"}, set()),  # nothing calls Cart.total, which is not a caller of itself
    ({"calls": "Get"}, set()),
    ({"calls": "appen"}, set()),
    ({"uses": "closed"}, {"Cart.add"}),
    ({"uses": "os"}, {"runCommand"}),
    ({"uses": "o"}, set()),
    ({"reads": "PRICE"}, {"Cart.add"}),
    ({"reads": "nothing"}, set()),
    ({"writes": "total"}, {"Cart.add"}),
    ({"writes": "item"}, set()),
    ({"mutates": "items[]"}, {"Cart.add"}),
    ({"mutates": "total"}, set()),
    ({"alias": "shell=com"}, {"runCommand"}),
    ({"alias": "com=shell"}, set()),
    ({"awaits": "session"}, {"fetch_prices"}),
    ({"awaits": "url"}, set()),
    ({"throws": "priceerror"}, {"fetch_prices"}),
    ({"throws": "ValueError"}, set()),
    ({"branchesMin": 2}, {"Cart.add"}),
    ({"branchesMin": 1}, {"Cart.add", "fetch_prices"}),
    ({"branchesMin": 0}, CART_CHUNKS | STORE_CHUNKS),  # what cannot be counted does not pass
    ({"loopsMin": 1}, {"Cart.add"}),
    ({"loopsMin": 2}, set()),
    ({"breaksMin": 1}, {"Cart.add"}),
    ({"breaksMin": 2}, set()),
    ({"continuesMin": 1}, {"Cart.add"}),
    ({"continuesMin": 2}, set()),
    ({"risk": "EXEC"}, {"runCommand"}),
    ({"risk": "xss"}, set()),
    ({"riskTag": "command"}, {"runCommand"}),
    ({"riskTag": "xss", "risk": "command"}, set()),
    ({"riskTag": "command", "risk": "xss"}, {"runCommand"}),
    ({"riskSource": "request"}, {"runCommand"}),
    ({"riskSource": "argv"}, set()),
    ({"riskSink": "os.system"}, {"runCommand"}),
    ({"riskSink": "eval"}, set()),
    ({"riskCategory": "input"}, {"runCommand"}),
    ({"riskCategory": "sql"}, set()),
    ({"riskFlow": "args->os"}, {"runCommand"}),
    ({"riskFlow": "->os.system"}, {"runCommand"}),
    ({"riskFlow": "os.system->"}, set()),
    ({"author": "ann"}, CART_CHUNKS),
    ({"author": "Ann Example, bob"}, CART_CHUNKS | STORE_CHUNKS),
    ({"author": "carol"}, set()),
    ({"chunkAuthor": "builder"}, {"runCommand"} | STORE_CHUNKS),
    ({"chunkAuthor": "carol"}, set()),
    ({"churnMin": 4}, STORE_CHUNKS),
    ({"churnMin": 3}, CART_CHUNKS | STORE_CHUNKS),
    ({"churnMin": 0}, CART_CHUNKS | STORE_CHUNKS),  # where git knows nothing, nothing passes
    ({"modifiedAfter": SPRING_DAY}, CART_CHUNKS | STORE_CHUNKS),
    ({"modifiedAfter": LATER_DAY}, STORE_CHUNKS),
    ({"modifiedAfter": "2026-03-20T09:46:40Z"}, CART_CHUNKS | STORE_CHUNKS),
    ({"modifiedAfter": "2026-03-20T11:46:41+02:00"}, STORE_CHUNKS),
    ({"modifiedAfter": "2030-01-01"}, set()),
    ({"lint": True}, {"runCommand"}),
    ({"lint": False}, ALL_CHUNKS),
    ({"meta": "severity=high"}, RECORD_CHUNKS),
    ({"meta": "severity=low"}, set()),
    ({"meta": "severity"}, RECORD_CHUNKS),
    ({"meta": "sever"}, set()),
    ({"meta": "vuln.cve=2026"}, RECORD_CHUNKS),
    ({"meta": "vuln"}, RECORD_CHUNKS),
    ({"meta": "tags=auth"}, RECORD_CHUNKS),
    ({"meta": {"severity": "high", "vuln": {"cve": "0001"}}}, RECORD_CHUNKS),
    ({"meta": {"severity": "high", "vuln": {"cve": "0002"}}}, set()),
    ({"meta": ["severity=high", {"tags": ["auth", "none"]}]}, RECORD_CHUNKS),
    ({"meta": ["severity=high", "tags=none"]}, set()),
    ({"metaJson": '{"severity": ["low", "high"]}'}, RECORD_CHUNKS),
    ({"metaJson": {"severity": "high"}}, RECORD_CHUNKS),
    ({"metaJson": '[{"severity": null}]'}, RECORD_CHUNKS),
    ({"metaJson": {"severity": "low"}, "meta": "severity=high"}, set()),
    ({"mode": "code"}, CART_CHUNKS | STORE_CHUNKS),
    ({"mode": "prose"}, GUIDE_CHUNKS | {"HTTPStore.load"}),
    ({"mode": "extracted-prose"}, {"HTTPStore.load"}),
    ({"mode": "records"}, RECORD_CHUNKS),
    ({"mode": "both"}, CART_CHUNKS | STORE_CHUNKS | GUIDE_CHUNKS),
    ({"branch": "MAIN"}, ALL_CHUNKS),
    ({"branch": "other"}, set()),
    ({}, ALL_CHUNKS),
    ({"type": "method", "calls": "get", "returns": True, "ext": "ts"}, {"HTTPStore.load"}),
]


@requirement(
    *(f"b:search:{name}" for name in dict.fromkeys(n for filter_arguments, _ in FILTER_CASES for n in filter_arguments))
)
@pytest.mark.parametrize(("arguments", "expected"), FILTER_CASES, ids=[repr(case[0]) for case in FILTER_CASES])
@pytest.mark.parametrize("backend", BACKEND_NAMES)
def test_a_filter_lets_through_what_it_names_and_nothing_else(
    engine: SearchEngine, backend: str, arguments: dict[str, Any], expected: set[str]
) -> None:
    assert find_passing_chunks(engine, backend, **arguments) == expected


def test_every_filter_of_the_table_is_shown_to_include_and_to_exclude() -> None:
    includes = {name for arguments, passed in FILTER_CASES if passed for name in arguments}
    excludes = {name for arguments, passed in FILTER_CASES if passed != ALL_CHUNKS for name in arguments}
    filters = {row.name for row in FILTER_ARGUMENTS} - {"modifiedSince"}  # its own test follows

    assert filters <= includes
    assert filters <= excludes


@requirement("b:search:modifiedSince")
def test_days_count_back_from_now_and_the_later_of_two_limits_counts(engine: SearchEngine) -> None:
    days = (time.time() - SPRING_TIMESTAMP) / DAY_SECONDS

    assert find_passing_chunks(engine, modifiedSince=days + 1) == CART_CHUNKS | STORE_CHUNKS
    assert find_passing_chunks(engine, modifiedSince=days - 1) == STORE_CHUNKS
    assert find_passing_chunks(engine, modifiedSince=days + 1, modifiedAfter=LATER_DAY) == STORE_CHUNKS
    assert find_passing_chunks(engine, modifiedSince=days - 1, modifiedAfter="2020-01-01") == STORE_CHUNKS
    assert find_passing_chunks(engine, modifiedSince=0) == set()
    assert find_passing_chunks(engine, modifiedSince=10**400) == CART_CHUNKS | STORE_CHUNKS


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"type": "clas"}, "class"),
        ({"lang": "pyton"}, "python"),
        ({"modifiedAfter": "yesterday"}, "2026-01-31"),
        ({"modifiedAfter": "2026-02-30"}, "2026-01-31"),
        ({"modifiedAfter": "20260101"}, "2026-01-31"),
        ({"metaJson": "{oops"}, "key"),
        ({"metaJson": '"text"'}, "key"),
        ({"metaJson": "{}"}, "key"),
        ({"metaJson": "[]"}, "key"),
        ({"meta": [{}]}, "key"),
        ({"meta": "=x"}, "key"),
        ({"meta": [3]}, "key"),
        ({"author": " , "}, "omit the argument"),
        ({"path": "/(/"}, "simpler"),
        ({"path": "!"}, "part of the path"),
        ({"path": "/elsewhere/src"}, "without a leading slash"),
        ({"ext": "/(/"}, "an extension such as py"),
        ({"path": "/(a+)+$/"}, "simpler"),
        ({"path": "/(a|aa)*b/"}, "simpler"),
        ({"path": "*a*a*a*a*a*a*a*a*a*a*a*a*a*b"}, "simpler"),
    ],
    ids=repr,
)
def test_a_value_that_can_mean_nothing_is_refused_with_a_hint(arguments: dict[str, Any], hint: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse_request({"query": "a", **arguments})

    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.details[0]["instancePath"] == f"/{next(iter(arguments))}"
    assert hint in caught.value.hint


def test_calls_finds_a_function_itself_only_if_it_calls_itself(tmp_path: Path) -> None:
    world = IndexedRepository(tmp_path)
    world.write_file(
        "tree.py",
        "def walk(node):\n    return [walk(child) for child in node]\n\n\n"
        "def count(node):\n    return len(walk(node))\n\n\n"
        "def report(node):\n    return count(node)\n",
    )
    world.build_index()
    with world.generation_store.lease_current() as lease:  # type: ignore[union-attr]
        engine = SearchEngine.open(lease.folder)

        assert find_passing_chunks(engine, calls="walk", type="function") == {"walk", "count"}
        assert find_passing_chunks(engine, calls="count", type="function") == {"report"}


def test_a_filter_means_the_same_the_second_time(engine: SearchEngine) -> None:
    assert find_passing_chunks(engine, calls="get") == find_passing_chunks(engine, calls="get")
    assert find_passing_chunks(engine, calls="get", param="url") == {"fetch_prices"}
    assert find_passing_chunks(engine, calls="get") == {"fetch_prices", "runCommand", "HTTPStore.load"}
