"""Every argument that filters: what it lets through and what it does not, on every backend."""

import time
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.search.arguments import FILTERS
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.request import read
from tests.requirements import requirement
from tests.search_world import DAY, SPRING, build, names, shop

BACKENDS = ("tantivy", "sqlite-fts", "memory")

CART = {"cart", "Cart", "Cart.add", "Cart.total", "fetch_prices", "runCommand"}
STORE = {"HTTPStore", "HTTPStore.load"}
GUIDE = {"Buying", "Parsing errors"}
RECORD = {"CVE-2026-0001"}
ALL = CART | STORE | GUIDE | RECORD


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine.open(build(tmp_path_factory.mktemp("world") / "one", shop()))


def found(engine: Engine, backend: str = "tantivy", **arguments: Any) -> set[str]:
    """Everything that passes: what a query of nothing but a negation finds."""
    given = {"mode": "all", "top": 100, "backend": backend, **arguments}
    return set(names(engine, "-nowhere", **given))


SPRING_DAY, LATER_DAY = "2026-03-20", "2026-04-01"

CASES: list[tuple[dict[str, Any], set[str]]] = [
    ({"path": "shop"}, CART),
    ({"path": "SHOP"}, CART),
    ({"path": "src/**/*.py"}, CART),
    ({"path": "*.ts"}, STORE),
    ({"path": "**/store.*"}, STORE),
    ({"path": "src/*"}, set()),
    ({"path": "/^(?:docs|web)/"}, STORE | GUIDE),
    ({"path": "!docs/**"}, CART | STORE | RECORD),
    ({"path": ["!docs", "!/^web/"]}, CART | RECORD),
    ({"path": ["src", "!cart"]}, STORE),
    ({"path": "!/^(?:docs|web)/"}, CART | RECORD),
    ({"file": "!cart"}, STORE | GUIDE | RECORD),
    ({"ext": "!py,!ts"}, GUIDE | RECORD),
    ({"ext": ["py", "!py"]}, set()),
    ({"path": ["docs/", "*.ts"]}, STORE | GUIDE),
    ({"path": "src", "file": "store.ts"}, STORE),
    ({"path": "src", "ext": "py"}, CART),
    ({"path": "Src", "caseFile": True}, set()),
    ({"path": "Src", "case": True}, set()),
    ({"path": "src", "case": True}, CART | STORE),
    ({"path": "./src/shop"}, CART),
    ({"path": "src\\shop"}, CART),
    ({"file": "cart"}, CART),
    ({"file": "src"}, set()),
    ({"file": "src/"}, CART | STORE),
    ({"file": "c?rt.*"}, CART),
    ({"file": "/\\.(?:md|ts)$/"}, STORE | GUIDE),
    ({"ext": "py"}, CART),
    ({"ext": ".py"}, CART),
    ({"ext": "*.py"}, CART),
    ({"ext": "PY, md"}, CART | GUIDE),
    ({"ext": ["py", "ts"]}, CART | STORE),
    ({"ext": "t*"}, STORE),
    ({"ext": "/^(?:py|md)$/"}, CART | GUIDE),
    ({"ext": "p"}, set()),
    ({"lang": "py"}, CART),
    ({"lang": "Python"}, CART),
    ({"lang": "ts,markdown"}, STORE | GUIDE),
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
    ({"async": False}, ALL),
    ({"generator": True}, {"fetch_prices"}),
    ({"returns": True}, {"Cart.total", "HTTPStore.load"}),
    ({"import": "werkzeug"}, CART),
    ({"import": "werkzeug.datastructures"}, CART),
    ({"import": "werk"}, set()),
    ({"import": "Werkzeug"}, set()),
    ({"import": "@shop/core"}, STORE),
    ({"import": "decimal,./items"}, CART | STORE),
    ({"calls": "append"}, {"Cart.add"}),
    ({"calls": "items.append"}, {"Cart.add"}),
    ({"calls": "self.items.append"}, {"Cart.add"}),
    ({"calls": "get"}, {"fetch_prices", "runCommand", "HTTPStore.load"}),
    ({"calls": "session.get"}, {"fetch_prices"}),
    ({"calls": "total"}, {"Cart.total"}),  # the caller counts too
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
    ({"branchesMin": 0}, CART | STORE),  # what cannot be counted does not pass
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
    ({"author": "ann"}, CART),
    ({"author": "Ann Example, bob"}, CART | STORE),
    ({"author": "carol"}, set()),
    ({"chunkAuthor": "builder"}, {"runCommand"} | STORE),
    ({"chunkAuthor": "carol"}, set()),
    ({"churnMin": 4}, STORE),
    ({"churnMin": 3}, CART | STORE),
    ({"churnMin": 0}, CART | STORE),  # where git knows nothing, nothing passes
    ({"modifiedAfter": SPRING_DAY}, CART | STORE),
    ({"modifiedAfter": LATER_DAY}, STORE),
    ({"modifiedAfter": "2026-03-20T09:46:40Z"}, CART | STORE),
    ({"modifiedAfter": "2026-03-20T11:46:41+02:00"}, STORE),
    ({"modifiedAfter": "2030-01-01"}, set()),
    ({"lint": True}, {"runCommand"}),
    ({"lint": False}, ALL),
    ({"meta": "severity=high"}, RECORD),
    ({"meta": "severity=low"}, set()),
    ({"meta": "severity"}, RECORD),
    ({"meta": "sever"}, set()),
    ({"meta": "vuln.cve=2026"}, RECORD),
    ({"meta": "vuln"}, RECORD),
    ({"meta": "tags=auth"}, RECORD),
    ({"meta": {"severity": "high", "vuln": {"cve": "0001"}}}, RECORD),
    ({"meta": {"severity": "high", "vuln": {"cve": "0002"}}}, set()),
    ({"meta": ["severity=high", {"tags": ["auth", "none"]}]}, RECORD),
    ({"meta": ["severity=high", "tags=none"]}, set()),
    ({"metaJson": '{"severity": ["low", "high"]}'}, RECORD),
    ({"metaJson": {"severity": "high"}}, RECORD),
    ({"metaJson": '[{"severity": null}]'}, RECORD),
    ({"metaJson": {"severity": "low"}, "meta": "severity=high"}, set()),
    ({"mode": "code"}, CART | STORE),
    ({"mode": "prose"}, GUIDE | {"HTTPStore.load"}),
    ({"mode": "extracted-prose"}, {"HTTPStore.load"}),
    ({"mode": "records"}, RECORD),
    ({"mode": "both"}, CART | STORE | GUIDE),
    ({"branch": "MAIN"}, ALL),
    ({"branch": "other"}, set()),
    ({}, ALL),
    ({"type": "method", "calls": "get", "returns": True, "ext": "ts"}, {"HTTPStore.load"}),
]


@requirement(
    *(f"b:search:{name}" for name in dict.fromkeys(n for given, _ in CASES for n in given))
)
@pytest.mark.parametrize(("arguments", "expected"), CASES, ids=[repr(case[0]) for case in CASES])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_filter_lets_through_what_it_names_and_nothing_else(
    engine: Engine, backend: str, arguments: dict[str, Any], expected: set[str]
) -> None:
    assert found(engine, backend, **arguments) == expected


def test_every_filter_of_the_table_is_shown_to_include_and_to_exclude() -> None:
    includes = {name for given, passed in CASES if passed for name in given}
    excludes = {name for given, passed in CASES if passed != ALL for name in given}
    filters = {row.name for row in FILTERS} - {"modifiedSince"}  # its own test follows

    assert filters <= includes
    assert filters <= excludes


@requirement("b:search:modifiedSince")
def test_days_count_back_from_now_and_the_later_of_two_limits_counts(engine: Engine) -> None:
    days = (time.time() - SPRING) / DAY

    assert found(engine, modifiedSince=days + 1) == CART | STORE
    assert found(engine, modifiedSince=days - 1) == STORE
    assert found(engine, modifiedSince=days + 1, modifiedAfter=LATER_DAY) == STORE
    assert found(engine, modifiedSince=days - 1, modifiedAfter="2020-01-01") == STORE
    assert found(engine, modifiedSince=0) == set()
    assert found(engine, modifiedSince=10**400) == CART | STORE


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
        ({"author": " , "}, "leave it out"),
        ({"path": "/(/"}, "simpler"),
        ({"path": "!"}, "part of the path"),
        ({"path": "/elsewhere/src"}, "without a slash"),
        ({"ext": "/(/"}, "an extension such as py"),
        ({"path": "/(a+)+$/"}, "simpler"),
        ({"path": "/(a|aa)*b/"}, "simpler"),
        ({"path": "*a*a*a*a*a*a*a*a*a*a*a*a*a*b"}, "simpler"),
    ],
    ids=repr,
)
def test_a_value_that_can_mean_nothing_is_refused_with_a_hint(
    arguments: dict[str, Any], hint: str
) -> None:
    with pytest.raises(ToolError) as caught:
        read({"query": "a", **arguments})

    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.details[0]["instancePath"] == f"/{next(iter(arguments))}"
    assert hint in caught.value.hint


def test_a_filter_means_the_same_the_second_time(engine: Engine) -> None:
    assert found(engine, calls="get") == found(engine, calls="get")
    assert found(engine, calls="get", param="url") == {"fetch_prices"}
    assert found(engine, calls="get") == {"fetch_prices", "runCommand", "HTTPStore.load"}
