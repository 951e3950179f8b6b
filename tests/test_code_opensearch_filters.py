"""Every filter in OpenSearch: the same chunks as on one machine, or a refusal that says why."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.opensearch.regexes import InexpressibleError, lucene
from cleats.toolsets.code.opensearch.remote import Remote
from cleats.toolsets.code.search.arguments import FILTERS
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.patterns import glob
from cleats.toolsets.code.search.request import read
from tests import opensearch_queries
from tests.index_world import World
from tests.opensearch import opensearch
from tests.opensearch_world import answer, names, publish, remote
from tests.polyglot import FOLDER, cases
from tests.search_world import DAY, SPRING, build, shop
from tests.test_code_search_filters import CART, CASES, STORE

EVERYTHING = "-nowheretobefound"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    folder = build(tmp_path_factory.mktemp("world") / "000001-0badcafe", shop())
    with opensearch() as cluster:
        publish(cluster, folder, shards=3)
        yield remote(cluster, pause=600)


@pytest.mark.parametrize(("arguments", "expected"), CASES, ids=[repr(case[0]) for case in CASES])
def test_a_filter_lets_through_what_it_names_and_nothing_else(
    searched: Remote, arguments: dict[str, Any], expected: set[str]
) -> None:
    found = names(searched, EVERYTHING, **{"mode": "all", "top": 100, **arguments})

    assert set(found) == expected


def test_days_count_back_from_now(searched: Remote) -> None:
    days = (time.time() - SPRING) / DAY
    known = {"mode": "all", "top": 100}

    assert set(names(searched, EVERYTHING, modifiedSince=days + 1, **known)) == CART | STORE
    assert set(names(searched, EVERYTHING, modifiedSince=days - 1, **known)) == STORE
    assert names(searched, EVERYTHING, branchesMin=10**30, **known) == []


class Both:
    """A real index of many languages, on one machine and in a cluster."""

    def __init__(self, folder: Path, searched: Remote) -> None:
        self.engine = Engine.open(folder)
        self.searched = searched

    def sets(self, arguments: dict[str, Any]) -> tuple[set[Any], set[Any]]:
        """What each of them finds."""
        asked = {"query": EVERYTHING, "top": 1000, "mode": "all", **arguments}
        here = self.engine.search(read(asked)).hits
        there = answer(self.searched, **asked, output="full")
        hits = [
            hit for mode in ("code", "prose", "extractedProse", "records") for hit in there[mode]
        ]
        with self.engine.details.reading() as reading:
            rows = [
                reading.row(hit.path, hit.ordinal) for listed in here.values() for hit in listed
            ]
        return {row.key for row in rows}, {hit["id"] for hit in hits}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    world = World(tmp_path_factory.mktemp("polyglot"), Options(workers=1))
    for file in FOLDER.iterdir():
        world.write(file.name, file.read_bytes())
    world.write("config.toml", '[desk]\nowner = "Ada"\nlimit = 10\n')
    world.write("Straße/Größe[1].py", "def größe():\n    return 'ß'\n")
    world.git("init", "--quiet", "--initial-branch", "main")
    world.commit(author="Ada")
    world.build()
    with opensearch() as cluster, world.lease() as lease:
        publish(cluster, lease.folder, shards=2)
        yield Both(lease.folder, remote(cluster, pause=600))


@pytest.mark.parametrize("argument", sorted({argument for _, argument, _ in cases()}))
def test_a_filter_gives_the_same_set_in_a_cluster(both: Both, argument: str) -> None:
    values = [case.value for _, name, case in cases() if name == argument]

    for value in list(dict.fromkeys(map(str, values)))[:2]:
        given = next(each for each in values if str(each) == value)
        here, there = both.sets({argument: given})

        assert here == there
        assert here


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "**/*.{py,go}"},
        {"path": "STRASSE"},
        {"path": "straße/"},
        {"path": "/STRAẞE|größe/"},
        {"path": "/\\w+\\[\\d\\]\\.py$/"},
        {"path": "Größe[1].py"},
        {"path": "*[!a-c].p*"},
        {"path": "*[k-s].PY", "caseFile": True},
        {"file": "desk.c"},
        {"ext": ["t*", "!tsx"]},
        {"path": "!/^desk\\.(rb|rs)$/"},
        {"author": "ADA", "churnMin": 1},
        {"meta": "desk.owner=ada"},
        {"modifiedAfter": "2000-01-01"},
        {"lint": True},
    ],
    ids=repr,
)
def test_what_a_file_is_called_and_who_wrote_it_filters_the_same(
    both: Both, arguments: dict[str, Any]
) -> None:
    here, there = both.sets(arguments)

    assert here == there


def test_every_filter_of_the_table_was_compared() -> None:
    compared = {name for given, _ in CASES for name in given} | {"modifiedSince"}

    assert {row.name for row in FILTERS} <= compared


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"path": "/(?=src)s/"}, "looks ahead"),
        ({"path": "/src(?!/shop)/"}, "looks ahead"),
        ({"path": "/(?<=src/)shop/"}, "looks ahead or behind"),
        ({"file": "/\\bcart/"}, "where a word begins"),
        ({"path": "/^src$/m"}, "where a line begins"),
        ({"ext": "/(?>p)y/"}, "never gives back"),
        ({"path": "/^^src/"}, "more than once"),
        ({"path": "/src$./"}, "after its end"),
        ({"backend": "memory"}, "searches in OpenSearch"),
        ({"query": " OR ".join(f"word{n}" for n in range(390))}, "too much for the cluster"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_what_opensearch_cannot_say_is_refused_by_name(
    searched: Remote, arguments: dict[str, Any], why: str
) -> None:
    with pytest.raises(ToolError) as caught:
        answer(searched, **{"query": "cart", **arguments})

    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert why in caught.value.message
    assert caught.value.hint
    assert caught.value.details[0]["instancePath"] == f"/{next(iter(arguments))}"


PATTERNS = [
    *(re.compile(each, flags) for flags in (0, re.IGNORECASE) for each in (
        "^src/", "(?:^|/)tests?/", r"[^/]*\.py$", r"\w+\.py", r"a\d{2,3}b", "a|b|cd", "x??y",
        "(?i:A)b", r"[^\W_]+$", "[!-a]", "(a|)b", "(?s:.)k", ".s", r"\Aa.*\Z", r"[\s\d]", "(?!)",
    )),
    *(glob("path", each, ignore_case=case) for case in (True, False) for each in (
        "*.py", "src/**", "c?rt.*", "[!a]b", "**/x/*.{c,h}", "a[/]b", "**", "\u017f*",
    )),
]  # fmt: skip
SIGNS = [*"abSs\u017fK\u212a/._1\u0663\u00e9\u00c9\u00df\u0130\u0131\n"]
"""With those that Python takes for an s, a k or an i when case does not count."""

VALUES = [
    "",
    *(f"{a}{b}" for a in SIGNS for b in SIGNS),
    *(f"src/{a}{b}.py" for a in SIGNS for b in "ab/"),
    *("x/y.h", "tests/a.c", "a12b", "cart.ts", "xy\n", "SRC/X.PY"),
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda each: f"{each.pattern} {each.flags:x}")
def test_an_expression_fits_in_lucene_what_python_finds(pattern: re.Pattern[str]) -> None:
    fits = opensearch_queries.lucene(lucene(pattern))

    wrong = [
        value for value in VALUES if (pattern.search(value) is not None) != fits(f"\x02{value}\x03")
    ]

    assert wrong == []


def test_an_expression_that_becomes_too_long_is_refused() -> None:
    with pytest.raises(InexpressibleError, match="too long"):
        lucene(re.compile(r"\w" * 90))
