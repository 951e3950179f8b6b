"""Questions as people ask them: with quotes, parentheses, options and pasted messages."""

from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.output import payload
from cleats.toolsets.code.search.request import read
from tests.search_world import File, build, names, shop

BACKENDS = ("tantivy", "sqlite-fts", "memory")
MODES = ("code", "prose", "extractedProse", "records")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine.open(build(tmp_path_factory.mktemp("world") / "one", shop()))


def answer(engine: Engine, query: str, **given: Any) -> dict[str, Any]:
    return payload(engine, engine.search(read({"query": query, **given})))


def notes(engine: Engine, query: str, **given: Any) -> list[str]:
    return [note["code"] for note in answer(engine, query, **given)["stats"].get("notes", [])]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("how does the cart (Cart) add an item?", "Cart.add"),
        ('where is the "command" of a request taken from', "runCommand"),
        ("the customer's 'cart' class", "Cart"),
        ("python -m run command", "runCommand"),
        ('PriceError: "no price" (for url "https://x")', "fetch_prices"),
        ('load: nothing was found for the key "abcdef"', "HTTPStore.load"),
        ("command (of the shell", "runCommand"),
        ('an unbalanced " before command', "runCommand"),
    ],
)
def test_a_question_with_signs_in_it_finds_what_it_asks_for(
    engine: Engine, backend: str, query: str, expected: str
) -> None:
    assert expected in names(engine, query, backend=backend, mode="code", ann=False)[:2]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"parse error"', {"HTTPStore.load", "Parsing errors"}),
        ('"parsing errors"', {"Parsing errors"}),
        ('"parseItem"', {"HTTPStore.load"}),
        ('"HTTP store"', {"HTTPStore", "HTTPStore.load"}),
        ('where is a "parse error" of the cart', {"HTTPStore.load", "Parsing errors"}),
        ('"parse error" -customer', {"Parsing errors"}),
        ('"to buy" cart', {"Cart"}),
        ('cart -"the cart" -def -class', {"cart"}),
    ],
)
@pytest.mark.parametrize("meaning", [True, False])
def test_a_phrase_is_required_and_what_is_barred_is_left_out(
    engine: Engine, backend: str, query: str, expected: set[str], *, meaning: bool
) -> None:
    found = set(names(engine, query, backend=backend, top=100, ann=meaning))

    assert found == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_phrase_that_nothing_has_is_searched_for_as_words_and_it_is_said(
    engine: Engine, backend: str
) -> None:
    found = answer(engine, '"error parse" -customer', backend=backend, ann=False)

    assert found["prose"][0]["name"] == "Parsing errors"
    assert [note["code"] for note in found["stats"]["notes"]] == ["phrase_not_found"]
    assert found["stats"]["query"] == "error parse -customer"
    assert notes(engine, '"parse error"', backend=backend) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_star_is_everything_that_passes_the_filters(engine: Engine, backend: str) -> None:
    everything = names(engine, "*", mode="all", top=100, backend=backend)
    methods = names(engine, "*", type="method", backend=backend)

    assert len(set(everything)) == 11
    assert sorted(methods) == ["Cart.add", "HTTPStore.load"]


def test_a_formula_without_hits_says_how_it_was_read(engine: Engine) -> None:
    found = answer(engine, "the cart AND nowhere")

    assert not any(found[mode] for mode in MODES)
    [note] = found["stats"]["notes"]
    assert note["code"] == "formula_without_hits"
    assert note["message"].endswith(": cart AND nowhere")
    assert notes(engine, "cart AND item") == []


def test_hits_by_meaning_alone_are_said_to_be_that(tmp_path: Path) -> None:
    text = "def remove(folder): delete directory erase folder"
    file = File("a.py", text).piece("function", "remove", text)
    engine = Engine.open(build(tmp_path / "one", [file]))

    assert names(engine, "wipe") == ["remove"]
    assert notes(engine, "wipe") == ["only_by_meaning"]
    assert notes(engine, "wipe directory") == []
    assert notes(engine, "wipe", ann=False) == []
