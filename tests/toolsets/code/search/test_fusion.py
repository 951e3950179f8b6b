"""Weights of chunks by kind and location: copies, bodies, kinds, and names in a question."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.fusion import (
    TEST_PATH_PATTERN,
    BodySizes,
    ChunkIdentity,
    is_duplicate_path,
    mark_duplicates,
)
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from tests.support.search import ShopFile, build_generation

PRICE_QUESTION = "how is the price of an order worked out"
PRICE_SOURCE = "function price(order) { order price }"
LONGER_PRICE_SOURCE = "function price(order) { order price of everything that somebody wants to have sent }"


def build_engine(tmp_path: Path, *files: ShopFile) -> SearchEngine:
    return SearchEngine.open(build_generation(tmp_path / "made", list(files)))


def make_script(path: str, text: str, name: str = "price") -> ShopFile:
    return ShopFile(path, text, "javascript").add_chunk("function", name, text)


def find_hits(engine: SearchEngine, query: str, **arguments: Any) -> list[dict[str, Any]]:
    request = parse_request({"query": query, "mode": "code", "explain": True, **arguments})
    hits: list[dict[str, Any]] = render_answer(engine, search_generation(engine, request))["code"]
    return hits


def list_files(hits: list[dict[str, Any]]) -> list[str]:
    return [hit["file"] for hit in hits]


def map_points(hit: dict[str, Any]) -> dict[str, float]:
    return {part["name"]: part["points"] for part in hit["scoreBreakdown"]["parts"]}


@pytest.mark.parametrize("built", ["dist/shop.js", "build/esm/shop.mjs", "types/shop.d.ts"])
def test_a_copy_comes_after_its_original_and_says_why(tmp_path: Path, built: str) -> None:
    engine = build_engine(
        tmp_path, make_script(built, PRICE_SOURCE, "shop.price"), make_script("src/shop.ts", LONGER_PRICE_SOURCE)
    )

    hits = find_hits(engine, PRICE_QUESTION)

    assert list_files(hits) == ["src/shop.ts", built]
    assert "copy" not in map_points(hits[0])
    assert map_points(hits[1])["copy"] == pytest.approx(-0.6 / 0.4 * hits[1]["score"], abs=1e-5)
    assert hits[1]["score"] == pytest.approx(sum(map_points(hits[1]).values()))


def test_a_prototype_comes_after_the_function_that_has_the_body(tmp_path: Path) -> None:
    head = ShopFile("shop.h", PRICE_SOURCE, "c").add_chunk("function", "price", PRICE_SOURCE, modifiers=["prototype"])
    other = ShopFile("z.h", PRICE_SOURCE, "c").add_chunk("function", "other", PRICE_SOURCE, modifiers=["prototype"])
    body = ShopFile("src/shop.c", LONGER_PRICE_SOURCE, "c").add_chunk("function", "price", LONGER_PRICE_SOURCE)

    hits = find_hits(build_engine(tmp_path, head, other, body), PRICE_QUESTION)

    assert list_files(hits).index("src/shop.c") < list_files(hits).index("shop.h")
    assert {hit["file"]: "copy" in map_points(hit) for hit in hits} == {
        "src/shop.c": False,
        "z.h": False,
        "shop.h": True,
    }


def test_a_name_that_is_asked_for_brings_the_original_first(tmp_path: Path) -> None:
    engine = build_engine(
        tmp_path, make_script("dist/shop.js", PRICE_SOURCE), make_script("src/shop.ts", LONGER_PRICE_SOURCE)
    )

    assert list_files(find_hits(engine, "price")) == ["src/shop.ts", "dist/shop.js"]


@pytest.mark.parametrize(
    "other",
    [make_script("src/shop.ts", LONGER_PRICE_SOURCE, "total"), make_script("tests/shop.test.ts", LONGER_PRICE_SOURCE)],
)
def test_what_has_no_original_is_no_copy(tmp_path: Path, other: ShopFile) -> None:
    engine = build_engine(tmp_path, make_script("dist/shop.js", PRICE_SOURCE), other)

    hits = find_hits(engine, PRICE_QUESTION)

    assert list_files(hits)[0] == "dist/shop.js"
    assert "copy" not in map_points(hits[0])


def test_a_listing_knows_no_standing(tmp_path: Path) -> None:
    engine = build_engine(
        tmp_path, make_script("dist/shop.js", PRICE_SOURCE), make_script("src/shop.ts", LONGER_PRICE_SOURCE)
    )

    hits = find_hits(engine, "*")

    assert list_files(hits) == ["dist/shop.js", "src/shop.ts"]
    assert all(map_points(hit).keys() == {"everything"} for hit in hits)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("dist/index.js", True),
        ("packages/a/dist/esm5/index.js", True),
        ("build/lib/shop/cart.py", True),
        ("build/lib.linux-x86_64/shop/cart.py", True),
        ("Map.d.ts", True),
        ("lib/index.d.mts", True),
        ("numpy/core.pyi", True),
        ("static/jquery-min.js", True),
        ("static/jquery.min.js", True),
        ("go/vendor/github.com/a/b.go", True),
        ("src/third_party/zlib/inflate.c", True),
        ("build/webpack.config.ts", False),
        ("tools/build/graph.go", False),
        ("distance/index.js", False),
        ("lib/express.js", False),
        ("src/min.js", False),
        ("src/shop.ts", False),
    ],
)
def test_files_that_repeat_others_are_known_by_their_paths(path: str, *, expected: bool) -> None:
    assert is_duplicate_path(path) == expected


def test_nothing_is_a_copy_of_a_test_or_of_what_has_no_name() -> None:
    copied = np.array([True, True, True, False, False, False])
    of_tests = np.array([False, False, False, True, False, False])
    names = ["A.run", "b:stop", "", "run", "C#stop", ""]
    called = [ChunkIdentity.from_chunk(name, f"{name}.js") for name in names]

    assert mark_duplicates(copied, of_tests, called).tolist() == [False, True, False, False, False, False]


def list_ranked_parts(hit: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for part in hit["scoreBreakdown"]["parts"] if part["rank"]]


def test_copies_take_no_rank_away_from_others(tmp_path: Path) -> None:
    built = [make_script(f"dist/shop.{form}.js", PRICE_SOURCE) for form in ("cjs", "esm", "umd")]
    other = "function total(order) { order price of everything that somebody wants to have sent }"
    engine = build_engine(
        tmp_path, make_script("src/shop.ts", PRICE_SOURCE), make_script("src/total.ts", other), *built
    )

    hits = find_hits(engine, PRICE_QUESTION)

    assert list_files(hits)[:2] == ["src/shop.ts", "src/total.ts"]
    assert {part["rank"] for part in list_ranked_parts(hits[0])} == {1}
    assert {part["rank"] for part in list_ranked_parts(hits[1])} == {2}
    scores = [[part["score"] for part in list_ranked_parts(hit)] for hit in hits[:2]]
    assert all(first > second for first, second in zip(*scores, strict=True))


def test_of_builds_without_their_source_the_first_stands_for_all(tmp_path: Path) -> None:
    built = [make_script(f"dist/{form}/shop.js", PRICE_SOURCE) for form in ("cjs", "esm", "legacy")]
    engine = build_engine(tmp_path, *built, make_script("dist/esm/cart.js", LONGER_PRICE_SOURCE))

    hits = find_hits(engine, PRICE_QUESTION)

    assert list_files(hits)[:2] == ["dist/cjs/shop.js", "dist/esm/cart.js"]
    assert ["copy" in map_points(hit) for hit in hits] == [False, False, True, True]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("dist/shop.cjs.development.js", "dist/shop.esm.js", True),
        ("build/legacy/shop.cjs", "build/modern/shop.js", True),
        ("dist/a/index.js", "dist/b/index.js", False),
        ("vendor/a/a.go", "vendor/b/b.go", False),
        ("dist/shop.js", "dist/distance.js", False),
        ("dist/shop.js", "dist/shop.js", False),
    ],
)
def test_builds_of_one_file_differ_by_the_names_of_builds(one: str, other: str, *, expected: bool) -> None:
    called = [ChunkIdentity.from_chunk("new", one), ChunkIdentity.from_chunk("new", other)]

    assert mark_duplicates(np.ones(2, np.bool_), np.zeros(2, np.bool_), called).tolist() == [False, expected]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("dist/testHelper.mjs", True),
        ("src/test-utils.tsx", True),
        ("testutil.go", True),
        ("src/testimony.ts", False),
        ("src/contestHelper.ts", False),
    ],
)
def test_helpers_of_tests_are_known_by_their_names(path: str, *, expected: bool) -> None:
    assert bool(TEST_PATH_PATTERN.search(path)) == expected


def test_what_does_more_comes_before_a_stub_of_the_same_words(tmp_path: Path) -> None:
    text = "def one(): order price\n\ndef two(): order price of it"
    file = ShopFile("a.py", text).add_chunk("function", "one", "def one(): order price")
    used = [f"name{number}" for number in range(12)]
    file.add_chunk("function", "two", "def two(): order price of it", uses=used)
    engine = build_engine(tmp_path, file)

    hits = find_hits(engine, PRICE_QUESTION)

    assert [hit["name"] for hit in hits] == ["two", "one"]
    assert map_points(hits[0])["body"] > map_points(hits[1]).get("body", 0.0)


def test_three_names_count_as_other_kinds_do_and_more_names_count_more_up_to_a_limit() -> None:
    counts = np.arange(200)
    sizes = BodySizes.from_counts(counts >= 0, counts, counts)
    other = BodySizes.from_counts(counts < 0, counts, counts)

    assert sizes.names[3] == pytest.approx(other.names[0])
    assert sizes.lines[12] == pytest.approx(other.lines[0])
    assert np.all(np.diff(sizes.names[:61]) > 0)
    assert sizes.names[60] == sizes.names[-1]
    assert sizes.lines[0] == sizes.lines[1] == 0


def test_the_kind_counts_by_meaning_as_it_does_by_words(tmp_path: Path) -> None:
    text = "delete folder\n\nerase the directory of files"
    file = ShopFile("a.py", text).add_chunk("module", "a", "delete folder")
    file.add_chunk("function", "b", "erase the directory of files")
    engine = build_engine(tmp_path, file)

    hits = {hit["name"]: hit for hit in find_hits(engine, "delete folders", ann=True)}

    ranks = {
        name: part["rank"]
        for name, hit in hits.items()
        for part in hit["scoreBreakdown"]["parts"]
        if part["name"] == "meaning"
    }
    assert hits["a"]["annScore"] > hits["b"]["annScore"]
    assert ranks == {"b": 1, "a": 2}


@pytest.mark.parametrize(
    ("query", "mentioned"),
    [
        ("how does loadOrder work", True),
        ("what does Shop.loadOrder return?", True),
        ("why does `loadOrder` fail when the network of the customer is slow", True),
        ("why does `loadOrder()` fail when the network of the customer is slow", True),
        ("why does loadOrder fail when the network of the customer is slow", False),
        ("how does loadorder work", False),
        ("how does load work", False),
        ("how does order work", False),
    ],
)
def test_a_name_that_a_question_is_about_brings_what_is_called_so(
    tmp_path: Path, query: str, *, mentioned: bool
) -> None:
    text = "function loadOrder(id) { return get(id) }"
    use = "function why() { work(); loadOrder(fail, when, network, customer, slow) }"
    other = "function loadorder() { return order }"
    file = ShopFile("shop.js", f"{use}\n{text}\n{other}", "javascript")
    file.add_chunk("function", "why", use).add_chunk("method", "Shop.loadOrder", text)
    file.add_chunk("function", "LOADORDER", other).add_chunk("function", "order", "{ return order }")
    engine = build_engine(tmp_path, file)

    hits = find_hits(engine, query)

    called = [hit["name"] for hit in hits if "mention" in map_points(hit)]
    assert called == ["Shop.loadOrder"] * mentioned


def test_a_name_alone_in_backticks_is_looked_up_like_any_name(tmp_path: Path) -> None:
    engine = build_engine(
        tmp_path, make_script("shop.js", PRICE_SOURCE), make_script("all.js", LONGER_PRICE_SOURCE, "other")
    )

    for query in ("`price`", "`price()`", "price()"):
        assert map_points(find_hits(engine, query)[0])["symbol"] == 4.0, query
