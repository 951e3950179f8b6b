"""The ranking: symbols, phrases and whole words come first, and the order never changes."""

import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ToolError
from cleats.system.processes import blocking
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from tests.support.requirements import requirement
from tests.support.search import ShopFile, build_generation, build_shop_files, search_names

BACKEND_NAMES = ("tantivy", "sqlite-fts", "memory")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> SearchEngine:
    return SearchEngine.open(build_generation(tmp_path_factory.mktemp("world") / "one", build_shop_files()))


def make_functions(**bodies: str) -> list[ShopFile]:
    """Return one file of functions with these bodies."""
    file = ShopFile("lib/all.py", "\n\n".join(bodies.values()))
    for name, body in bodies.items():
        file.add_chunk("function", name, body)
    return [file]


def build_engine(tmp_path: Path, **bodies: str) -> SearchEngine:
    return SearchEngine.open(build_generation(tmp_path / "made", make_functions(**bodies)))


@requirement("b:search:query", "b:search:backend")
@pytest.mark.parametrize("backend", BACKEND_NAMES)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("parse AND error", {"HTTPStore.load", "Parsing errors"}),
        ('"parse error" OR nowhere', {"HTTPStore.load", "Parsing errors"}),
        ('"error parse" AND cart', set()),
        ('"parsing errors" OR nowhere', {"Parsing errors"}),
        ('"parseItem" OR nowhere', {"HTTPStore.load"}),
        ("parse_item OR nowhere", {"HTTPStore.load"}),
        ("(parse OR cart) -error -guide -src", set()),
        (
            "(parse OR cart) -error -guide -python -self",
            {"cart", "Cart", "runCommand", "HTTPStore.load"},
        ),
        ("cart !add !total NOT class !def", {"cart", "Buying"}),
        ("-(cart OR store OR guide OR finding)", set()),
        ("NOT NOT nowhere", set()),
        ('"HTTP store" OR nowhere', {"HTTPStore", "HTTPStore.load"}),
        ("what AND is Cart.add AND the item", {"Cart.add"}),
        ("Cart.add AND item", {"Cart.add"}),
        ("docs/guide AND pay", {"Buying"}),
        ("x" * 200 + " AND cart", set()),
    ],
)
def test_a_formula_finds_exactly_what_it_demands(
    engine: SearchEngine, backend: str, query: str, expected: set[str]
) -> None:
    hit_names = set(search_names(engine, query, backend=backend, top=100))

    assert hit_names == expected


def test_a_query_of_negations_finds_everything_else(engine: SearchEngine) -> None:
    everything = set(search_names(engine, "-nowhere", mode="all", top=100))
    without = set(search_names(engine, "-cart", mode="all", top=100))

    assert len(everything) == 11
    assert without == {"HTTPStore", "HTTPStore.load", "Parsing errors", "CVE-2026-0001"}


@pytest.mark.parametrize("backend", BACKEND_NAMES)
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("HTTPStore.load", "HTTPStore.load"),
        ("httpstore.load()", "HTTPStore.load"),
        ("load", "HTTPStore.load"),
        ("Cart", "Cart"),
        ("cart", "cart"),
        ("run command", "runCommand"),
        ("Parsing errors", "Parsing errors"),
    ],
)
def test_who_is_called_what_was_asked_for_comes_first(
    engine: SearchEngine, backend: str, query: str, first: str
) -> None:
    mode = "prose" if "rr" in query else "code"

    assert search_names(engine, query, backend=backend, mode=mode)[0] == first


@pytest.mark.parametrize("query", ["Meta", "META", "meta"])
def test_of_names_that_differ_in_case_the_one_as_written_comes_first(tmp_path: Path, query: str) -> None:
    names_of = ["META", "Model.Meta", "options.meta"]
    file = ShopFile("a.py", "\n".join(f"{name} = 1" for name in names_of))
    for name in names_of:
        file.add_chunk("constant", name, f"{name} = 1")
    engine = SearchEngine.open(build_generation(tmp_path / "one", [file]))

    assert search_names(engine, query)[0].endswith(query)


def test_a_files_name_brings_what_is_in_it(engine: SearchEngine) -> None:
    answer = render_answer(engine, search_generation(engine, parse_request({"query": "cart.py", "mode": "code"})))

    assert [hit["file"] for hit in answer["code"][:6]] == ["src/shop/cart.py"] * 6


@pytest.mark.parametrize("backend", BACKEND_NAMES)
def test_who_has_every_word_comes_before_who_has_one_of_them_often(tmp_path: Path, backend: str) -> None:
    engine = build_engine(
        tmp_path,
        first="def first(): parse parse parse parse",
        second="def second(): error error error error",
        third="def third(): some(long, text, of, other, things); parse; nothing; the; error",
    )

    assert search_names(engine, "parse error", backend=backend)[0] == "third"
    assert search_names(engine, "parse error", backend=backend, ann=False)[0] == "third"


@pytest.mark.parametrize("backend", BACKEND_NAMES)
def test_a_question_finds_what_has_only_some_of_its_words(engine: SearchEngine, backend: str) -> None:
    hit_names = search_names(engine, "where does a customer put the things to pay for?", backend=backend)

    assert "Buying" in hit_names
    assert "Cart" in hit_names


@requirement("b:search:case", "b:search:caseTokens")
@pytest.mark.parametrize("backend", BACKEND_NAMES)
def test_case_counts_when_it_is_asked_for(engine: SearchEngine, backend: str) -> None:
    def find_code(query: str, **arguments: Any) -> set[str]:
        return set(search_names(engine, query, backend=backend, mode="code", **arguments))

    assert "HTTPStore" in find_code("httpstore")
    assert find_code("httpstore", caseTokens=True) == set()
    assert find_code("HTTPStore", caseTokens=True) == {"HTTPStore"}
    assert find_code("HTTPStore", case=True) == {"HTTPStore"}
    assert "runCommand" in find_code('"Command"', caseTokens=True)
    assert "runCommand" not in find_code('"COMMAND"', caseTokens=True)


@requirement("b:search:ann")
def test_meaning_finds_what_has_no_word_in_common_and_can_be_left_out(tmp_path: Path) -> None:
    engine = build_engine(
        tmp_path,
        remove="def remove(folder): delete directory erase folder",
        weather="def weather(city): forecast rain sunshine temperature",
    )

    assert search_names(engine, "deleting directories", ann=True)[0] == "remove"
    assert "remove" in search_names(engine, "wipe")
    assert search_names(engine, "wipe", ann=False) == []


def test_meaning_adds_nothing_to_a_formula(tmp_path: Path) -> None:
    engine = build_engine(
        tmp_path,
        remove="def remove(folder): delete directory",
        erase="def erase(folder): wipe directory",
    )

    assert search_names(engine, "delete AND directory") == ["remove"]


@pytest.mark.parametrize("backend", BACKEND_NAMES)
def test_equals_stand_in_the_order_of_their_files_and_places(tmp_path: Path, backend: str) -> None:
    files = []
    for path in ("b.py", "a/z.py", "a.py", "a/b/c.py"):
        file = ShopFile(path, "def same(): pass\n\ndef same2(): pass")
        file.add_chunk("function", "one", "def same(): pass")
        file.add_chunk("function", "two", "def same2(): pass")
        files.append(file)
    random.Random(1).shuffle(files)
    engine = SearchEngine.open(build_generation(tmp_path / "one", files))

    answer = render_answer(engine, search_generation(engine, parse_request({"query": "-nowhere", "backend": backend})))

    locations = [(hit["file"], hit["startLine"]) for hit in answer["code"]]
    assert locations == sorted(locations)
    assert len(locations) == 8


def test_a_score_is_the_sum_of_its_parts(engine: SearchEngine) -> None:
    for query in ("cart", "parse error", "cart AND item", "where do customers pay?", "-cart"):
        answer = render_answer(engine, search_generation(engine, parse_request({"query": query, "explain": True})))
        hits = [hit for mode in ("code", "prose", "extractedProse") for hit in answer[mode]]

        assert hits
        for hit in hits:
            parts = hit["scoreBreakdown"]["parts"]
            assert hit["score"] == pytest.approx(sum(part["points"] for part in parts))
            assert all((part["rank"] is None) == (part["score"] is None) for part in parts)


@requirement("b:search:top")
def test_top_is_for_each_mode_and_at_least_one(engine: SearchEngine) -> None:
    counts = {top: search_names(engine, "-nowhere", mode="all", top=top) for top in (0, 1, 2)}

    assert len(counts[0]) == len(counts[1]) == 4
    assert len(counts[2]) == 6
    assert counts[1][0] == counts[2][0]


@pytest.mark.parametrize(
    "query",
    [
        "word " * 2000,
        "a" * 10_000,
        "((((a OR b) AND c) OR d) -e)" * 20,
        '"' + "again " * 500 + '"',
        " OR ".join(f"w{n}" for n in range(400)),
        "\u202e\u0000\ud800 ﷽ 🙂 cart",
        "cart\x00cart",
        "ﬃ" * 3000,
        "a.b" * 2000,
        "-" * 1000 + "a",
        "*" * 1000 + "a?[b",
    ],
    ids=lambda query: query[:12].encode("unicode-escape").decode(),
)
@pytest.mark.parametrize("backend", BACKEND_NAMES)
def test_a_strange_query_is_answered_or_refused(engine: SearchEngine, backend: str, query: str) -> None:
    try:
        search_names(engine, query, backend=backend)
    except ToolError as error:
        refused = error.message

        assert refused


@requirement("a:cancel:stops-the-work")
@pytest.mark.parametrize("backend", BACKEND_NAMES)
@pytest.mark.parametrize(
    "arguments",
    [
        {"query": " ".join(f'"the cart {number}"' for number in range(100))},
        {"query": " OR ".join(f"cart{number}" for number in range(100))},
        {"query": "cart", "path": [f"nowhere{number}" for number in range(100)], "name": "x"},
    ],
    ids=["phrases", "formula", "filters"],
)
def test_a_search_that_nobody_waits_for_stops_in_the_middle(
    engine: SearchEngine, backend: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = parse_request({**arguments, "backend": backend})
    looks = count()
    monkeypatch.setattr(blocking, "is_stopped", lambda: next(looks) > 2)

    with pytest.raises(blocking.WorkStopped):
        search_generation(engine, request)

    assert next(looks) == 4


def test_tests_rank_lower_where_the_operator_wants_it(tmp_path: Path) -> None:
    files = []
    for path in ("tests/test_cart.py", "zoo/cart.py"):
        text = "def pay(): pay the cart" + " again and again" * 9 * path.startswith("zoo")
        files.append(ShopFile(path, text).add_chunk("function", path, text))
    engine = SearchEngine.open(build_generation(tmp_path / "two", files))

    orders = [
        [hit.path for hit in search_generation(engine, parse_request(request, demote_tests=lower)).hits["code"]]
        for lower in (False, True)
        if (request := {"query": "who has to pay the cart", "ann": False})
    ]

    assert orders == [["tests/test_cart.py", "zoo/cart.py"], ["zoo/cart.py", "tests/test_cart.py"]]
