"""What comes first: symbols, phrases, words in full, and an order that never changes."""

import random
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ToolError
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.output import payload
from cleats.toolsets.code.search.request import read
from cleats.toolsets.code.search.retrieval import Stopped
from tests.requirements import requirement
from tests.search_world import File, build, names, shop

BACKENDS = ("tantivy", "sqlite-fts", "memory")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine.open(build(tmp_path_factory.mktemp("world") / "one", shop()))


def functions(**bodies: str) -> list[File]:
    """One file of functions with these bodies."""
    file = File("lib/all.py", "\n\n".join(bodies.values()))
    for name, body in bodies.items():
        file.piece("function", name, body)
    return [file]


def made(tmp_path: Path, **bodies: str) -> Engine:
    return Engine.open(build(tmp_path / "made", functions(**bodies)))


@requirement("b:search:query", "b:search:backend")
@pytest.mark.parametrize("backend", BACKENDS)
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
    engine: Engine, backend: str, query: str, expected: set[str]
) -> None:
    found = set(names(engine, query, backend=backend, top=100))

    assert found == expected


def test_a_query_of_negations_finds_everything_else(engine: Engine) -> None:
    everything = set(names(engine, "-nowhere", mode="all", top=100))
    without = set(names(engine, "-cart", mode="all", top=100))

    assert len(everything) == 11
    assert without == {"HTTPStore", "HTTPStore.load", "Parsing errors", "CVE-2026-0001"}


@pytest.mark.parametrize("backend", BACKENDS)
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
    engine: Engine, backend: str, query: str, first: str
) -> None:
    mode = "prose" if "rr" in query else "code"

    assert names(engine, query, backend=backend, mode=mode)[0] == first


@pytest.mark.parametrize("query", ["Meta", "META", "meta"])
def test_of_names_that_differ_in_case_the_one_as_written_comes_first(
    tmp_path: Path, query: str
) -> None:
    names_of = ["META", "Model.Meta", "options.meta"]
    file = File("a.py", "\n".join(f"{name} = 1" for name in names_of))
    for name in names_of:
        file.piece("constant", name, f"{name} = 1")
    engine = Engine.open(build(tmp_path / "one", [file]))

    assert names(engine, query)[0].endswith(query)


def test_a_files_name_brings_what_is_in_it(engine: Engine) -> None:
    answer = payload(engine, engine.search(read({"query": "cart.py", "mode": "code"})))

    assert [hit["file"] for hit in answer["code"][:6]] == ["src/shop/cart.py"] * 6


@pytest.mark.parametrize("backend", BACKENDS)
def test_who_has_every_word_comes_before_who_has_one_of_them_often(
    tmp_path: Path, backend: str
) -> None:
    engine = made(
        tmp_path,
        first="def first(): parse parse parse parse",
        second="def second(): error error error error",
        third="def third(): some(long, text, of, other, things); parse; nothing; the; error",
    )

    assert names(engine, "parse error", backend=backend)[0] == "third"
    assert names(engine, "parse error", backend=backend, ann=False)[0] == "third"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_question_finds_what_has_only_some_of_its_words(engine: Engine, backend: str) -> None:
    found = names(engine, "where does a customer put the things to pay for?", backend=backend)

    assert "Buying" in found
    assert "Cart" in found


@requirement("b:search:case", "b:search:caseTokens")
@pytest.mark.parametrize("backend", BACKENDS)
def test_case_counts_when_it_is_asked_for(engine: Engine, backend: str) -> None:
    def code(query: str, **given: Any) -> set[str]:
        return set(names(engine, query, backend=backend, mode="code", **given))

    assert "HTTPStore" in code("httpstore")
    assert code("httpstore", caseTokens=True) == set()
    assert code("HTTPStore", caseTokens=True) == {"HTTPStore"}
    assert code("HTTPStore", case=True) == {"HTTPStore"}
    assert "runCommand" in code('"Command"', caseTokens=True)
    assert "runCommand" not in code('"COMMAND"', caseTokens=True)


@requirement("b:search:ann")
def test_meaning_finds_what_has_no_word_in_common_and_can_be_left_out(tmp_path: Path) -> None:
    engine = made(
        tmp_path,
        remove="def remove(folder): delete directory erase folder",
        weather="def weather(city): forecast rain sunshine temperature",
    )

    assert names(engine, "deleting directories", ann=True)[0] == "remove"
    assert "remove" in names(engine, "wipe")
    assert names(engine, "wipe", ann=False) == []


def test_meaning_adds_nothing_to_a_formula(tmp_path: Path) -> None:
    engine = made(
        tmp_path,
        remove="def remove(folder): delete directory",
        erase="def erase(folder): wipe directory",
    )

    assert names(engine, "delete AND directory") == ["remove"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_equals_stand_in_the_order_of_their_files_and_places(tmp_path: Path, backend: str) -> None:
    files = []
    for path in ("b.py", "a/z.py", "a.py", "a/b/c.py"):
        file = File(path, "def same(): pass\n\ndef same2(): pass")
        file.piece("function", "one", "def same(): pass")
        file.piece("function", "two", "def same2(): pass")
        files.append(file)
    random.Random(1).shuffle(files)
    engine = Engine.open(build(tmp_path / "one", files))

    answer = payload(engine, engine.search(read({"query": "-nowhere", "backend": backend})))

    places = [(hit["file"], hit["startLine"]) for hit in answer["code"]]
    assert places == sorted(places)
    assert len(places) == 8


def test_a_score_is_the_sum_of_its_parts(engine: Engine) -> None:
    for query in ("cart", "parse error", "cart AND item", "where do customers pay?", "-cart"):
        answer = payload(engine, engine.search(read({"query": query, "explain": True})))
        hits = [hit for mode in ("code", "prose", "extractedProse") for hit in answer[mode]]

        assert hits
        for hit in hits:
            parts = hit["scoreBreakdown"]["parts"]
            assert hit["score"] == pytest.approx(sum(part["points"] for part in parts))
            assert all((part["rank"] is None) == (part["score"] is None) for part in parts)


@requirement("b:search:top")
def test_top_is_for_each_mode_and_at_least_one(engine: Engine) -> None:
    counts = {top: names(engine, "-nowhere", mode="all", top=top) for top in (0, 1, 2)}

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
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_strange_query_is_answered_or_refused(engine: Engine, backend: str, query: str) -> None:
    try:
        names(engine, query, backend=backend)
    except ToolError as error:
        refused = error.message

        assert refused


def test_a_search_that_nobody_waits_for_stops(engine: Engine) -> None:
    with pytest.raises(Stopped):
        engine.search(read({"query": "cart"}), stopped=lambda: True)


def test_tests_rank_lower_where_the_operator_wants_it(tmp_path: Path) -> None:
    files = []
    for path in ("tests/test_cart.py", "zoo/cart.py"):
        text = "def pay(): pay the cart" + " again and again" * 9 * path.startswith("zoo")
        files.append(File(path, text).piece("function", path, text))
    engine = Engine.open(build(tmp_path / "two", files))

    orders = [
        [hit.path for hit in engine.search(read(given, tests_lower=lower)).hits["code"]]
        for lower in (False, True)
        if (given := {"query": "who has to pay the cart", "ann": False})
    ]

    assert orders == [["tests/test_cart.py", "zoo/cart.py"], ["zoo/cart.py", "tests/test_cart.py"]]
