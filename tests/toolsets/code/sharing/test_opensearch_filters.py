"""Every filter in OpenSearch: the same chunks as on one machine, or a refusal with its reason."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.query.arguments import FILTER_ARGUMENTS
from cleats.toolsets.code.query.filters import compile_glob
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.retrieval import search_generation
from cleats.toolsets.code.sharing.opensearch.documents import list_other_chars
from cleats.toolsets.code.sharing.opensearch.regexes import InexpressibleError, translate_pattern
from cleats.toolsets.code.sharing.opensearch.remote_index import RemoteIndex
from tests.support import opensearch_queries
from tests.support.indexes import IndexedRepository
from tests.support.opensearch_clients import open_remote_index, publish_generation, run_search, search_names
from tests.support.opensearch_server import run_opensearch
from tests.support.polyglot import POLYGLOT_FOLDER, iterate_cases
from tests.support.search import DAY_SECONDS, SPRING_TIMESTAMP, build_generation, build_shop_files
from tests.toolsets.code.search.test_filters import CART_CHUNKS, FILTER_CASES, STORE_CHUNKS

MATCH_ALL_QUERY = "-nowheretobefound"


@pytest.fixture(scope="module")
def remote_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteIndex]:
    folder = build_generation(tmp_path_factory.mktemp("world") / "000001-0badcafe", build_shop_files())
    with run_opensearch() as cluster:
        publish_generation(cluster, folder, shards=3)
        yield open_remote_index(cluster, pause=600)


@pytest.mark.parametrize(("arguments", "expected"), FILTER_CASES, ids=[repr(case[0]) for case in FILTER_CASES])
def test_a_filter_lets_through_what_it_names_and_nothing_else(
    remote_index: RemoteIndex, arguments: dict[str, Any], expected: set[str]
) -> None:
    hit_names = search_names(remote_index, MATCH_ALL_QUERY, **{"mode": "all", "top": 100, **arguments})

    assert set(hit_names) == expected


def test_days_count_back_from_now(remote_index: RemoteIndex) -> None:
    days = (time.time() - SPRING_TIMESTAMP) / DAY_SECONDS
    common_arguments = {"mode": "all", "top": 100}

    assert (
        set(search_names(remote_index, MATCH_ALL_QUERY, modifiedSince=days + 1, **common_arguments))
        == CART_CHUNKS | STORE_CHUNKS
    )
    assert set(search_names(remote_index, MATCH_ALL_QUERY, modifiedSince=days - 1, **common_arguments)) == STORE_CHUNKS
    assert search_names(remote_index, MATCH_ALL_QUERY, branchesMin=10**30, **common_arguments) == []


class ComparedIndexes:
    """A real index of many languages, on one machine and in a cluster."""

    def __init__(self, folder: Path, index: RemoteIndex) -> None:
        self.engine = SearchEngine.open(folder)
        self.remote_index = index

    def find_keys(self, arguments: dict[str, Any]) -> tuple[set[Any], set[Any]]:
        """Return the keys of the hits on this machine and in the cluster."""
        search_arguments = {"query": MATCH_ALL_QUERY, "top": 1000, "mode": "all", **arguments}
        here = search_generation(self.engine, parse_request(search_arguments)).hits
        there = run_search(self.remote_index, **search_arguments, output="full")
        hits = [hit for mode in ("code", "prose", "extractedProse", "records") for hit in there[mode]]
        with self.engine.hit_source.open_reader() as reading:
            rows = [reading.read_row(hit.path, hit.ordinal) for mode_hits in here.values() for hit in mode_hits]
        return {row.key for row in rows}, {hit["id"] for hit in hits}


@pytest.fixture(scope="module")
def compared_indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComparedIndexes]:
    world = IndexedRepository(tmp_path_factory.mktemp("polyglot"), BuildOptions(workers=1))
    for file in POLYGLOT_FOLDER.iterdir():
        world.write_file(file.name, file.read_bytes())
    world.write_file("config.toml", '[desk]\nowner = "Ada"\nlimit = 10\n')
    world.write_file("Straße/Größe[1].py", "def größe():\n    return 'ß'\n")
    world.run_git("init", "--quiet", "--initial-branch", "main")
    world.commit(author="Ada")
    world.build_index()
    with run_opensearch() as cluster, world.lease_current() as lease:
        publish_generation(cluster, lease.folder, shards=2)
        yield ComparedIndexes(lease.folder, open_remote_index(cluster, pause=600))


@pytest.mark.parametrize("argument", sorted({argument for _, argument, _ in iterate_cases()}))
def test_a_filter_gives_the_same_set_in_a_cluster(compared_indexes: ComparedIndexes, argument: str) -> None:
    values = [case.value for _, name, case in iterate_cases() if name == argument]

    for value in list(dict.fromkeys(map(str, values)))[:2]:
        case_value = next(candidate for candidate in values if str(candidate) == value)
        here, there = compared_indexes.find_keys({argument: case_value})

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
    compared_indexes: ComparedIndexes, arguments: dict[str, Any]
) -> None:
    here, there = compared_indexes.find_keys(arguments)

    assert here == there


def test_every_filter_of_the_table_was_compared() -> None:
    compared = {name for arguments, _ in FILTER_CASES for name in arguments} | {"modifiedSince"}

    assert {row.name for row in FILTER_ARGUMENTS} <= compared


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"path": "/(?=src)s/"}, "uses a lookahead"),
        ({"path": "/src(?!/shop)/"}, "uses a lookahead"),
        ({"path": "/(?<=src/)shop/"}, "uses a lookahead"),
        ({"file": "/\\bcart/"}, "uses a word boundary"),
        ({"path": "/^src$/m"}, "uses the flag m"),
        ({"ext": "/(?>p)y/"}, "uses an atomic group"),
        ({"path": "/^^src/"}, "more than once"),
        ({"path": "/src$./"}, "continues after"),
        ({"backend": "memory"}, "searches in OpenSearch"),
        ({"query": " OR ".join(f"word{n}" for n in range(390))}, "more than the OpenSearch cluster accepts"),
    ],
    ids=lambda parameter: str(parameter)[:40],
)
def test_what_opensearch_cannot_say_is_refused_by_name(
    remote_index: RemoteIndex, arguments: dict[str, Any], why: str
) -> None:
    with pytest.raises(ToolError) as caught:
        run_search(remote_index, **{"query": "cart", **arguments})

    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert why in caught.value.message
    assert caught.value.hint
    assert caught.value.details[0]["instancePath"] == f"/{next(iter(arguments))}"


PATH_PATTERNS = [
    *(re.compile(expression, flags) for flags in (0, re.IGNORECASE) for expression in (
        "^src/", "(?:^|/)tests?/", r"[^/]*\.py$", r"\w+\.py", r"a\d{2,3}b", "a|b|cd", "x??y",
        "(?i:A)b", r"[^\W_]+$", "[!-a]", "(a|)b", "(?s:.)k", ".s", r"\Aa.*\Z", r"[\s\d]", "(?!)",
    )),
    *(compile_glob("path", expression, ignore_case=case) for case in (True, False) for expression in (
        "*.py", "src/**", "c?rt.*", "[!a]b", "**/x/*.{c,h}", "a[/]b", "**", "\u017f*",
    )),
]  # fmt: skip
SIGN_CHARACTERS = [*"abSs\u017fK\u212a/._1\u0663\u00e9\u00c9\u00df\u0130\u0131\n"]
"""Characters, including those that Python equates with s, k or i when case does not count."""

PATH_VALUES = [
    "",
    *(f"{a}{b}" for a in SIGN_CHARACTERS for b in SIGN_CHARACTERS),
    *(f"src/{a}{b}.py" for a in SIGN_CHARACTERS for b in "ab/"),
    *("x/y.h", "tests/a.c", "a12b", "cart.ts", "xy\n", "SRC/X.PY"),
]


@pytest.mark.parametrize("pattern", PATH_PATTERNS, ids=lambda parameter: f"{parameter.pattern} {parameter.flags:x}")
def test_an_expression_fits_in_lucene_what_python_finds(pattern: re.Pattern[str]) -> None:
    fits = opensearch_queries.compile_lucene_regex(translate_pattern(pattern))

    wrong = [value for value in PATH_VALUES if (pattern.search(value) is not None) != fits(f"\x02{value}\x03")]

    assert wrong == []


@pytest.mark.parametrize("pattern", PATH_PATTERNS, ids=lambda parameter: f"{parameter.pattern} {parameter.flags:x}")
def test_a_short_expression_fits_the_same_values_of_an_alphabet(pattern: re.Pattern[str]) -> None:
    expression = translate_pattern(pattern, list_other_chars(PATH_VALUES))
    fits = opensearch_queries.compile_lucene_regex(expression)

    wrong = [value for value in PATH_VALUES if (pattern.search(value) is not None) != fits(f"\x02{value}\x03")]

    assert wrong == []
    assert len(expression) < 400


def test_an_expression_that_becomes_too_long_is_refused() -> None:
    with pytest.raises(InexpressibleError, match="too long"):
        translate_pattern(re.compile(r"\w" * 90))
