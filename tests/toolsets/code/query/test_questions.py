"""Questions as people ask them: with quotes, parentheses, options and pasted messages."""

from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.query.tree import QueryError
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from tests.support.search import ShopFile, build_generation, build_shop_files, search_names

BACKEND_NAMES = ("tantivy", "sqlite-fts", "memory")
ANSWER_MODES = ("code", "prose", "extractedProse", "records")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> SearchEngine:
    return SearchEngine.open(build_generation(tmp_path_factory.mktemp("world") / "one", build_shop_files()))


def get_answer(engine: SearchEngine, query: str, **arguments: Any) -> dict[str, Any]:
    return render_answer(engine, search_generation(engine, parse_request({"query": query, **arguments})))


def list_note_codes(engine: SearchEngine, query: str, **arguments: Any) -> list[str]:
    return [note["code"] for note in get_answer(engine, query, **arguments)["stats"].get("notes", [])]


@pytest.mark.parametrize("backend", BACKEND_NAMES)
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
    engine: SearchEngine, backend: str, query: str, expected: str
) -> None:
    assert expected in search_names(engine, query, backend=backend, mode="code", ann=False)[:2]


@pytest.mark.parametrize("backend", BACKEND_NAMES)
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
    engine: SearchEngine, backend: str, query: str, expected: set[str], *, meaning: bool
) -> None:
    hit_names = set(search_names(engine, query, backend=backend, top=100, ann=meaning))

    assert hit_names == expected


@pytest.mark.parametrize("backend", BACKEND_NAMES)
def test_a_phrase_that_nothing_has_is_searched_for_as_words_and_it_is_said(engine: SearchEngine, backend: str) -> None:
    result = get_answer(engine, '"error parse" -customer', backend=backend, ann=False)

    assert result["prose"][0]["name"] == "Parsing errors"
    assert [note["code"] for note in result["stats"]["notes"]] == ["phrase_not_found"]
    assert result["stats"]["query"] == "error parse -customer"
    assert list_note_codes(engine, '"parse error"', backend=backend) == []


@pytest.mark.parametrize("backend", BACKEND_NAMES)
def test_a_star_is_everything_that_passes_the_filters(engine: SearchEngine, backend: str) -> None:
    everything = search_names(engine, "*", mode="all", top=100, backend=backend)
    methods = search_names(engine, "*", type="method", backend=backend)

    assert len(set(everything)) == 11
    assert sorted(methods) == ["Cart.add", "HTTPStore.load"]


def test_a_formula_without_hits_says_how_it_was_read(engine: SearchEngine) -> None:
    result = get_answer(engine, "the cart AND nowhere")

    assert not any(result[mode] for mode in ANSWER_MODES)
    [note] = result["stats"]["notes"]
    assert note["code"] == "formula_without_hits"
    assert note["message"].endswith(": cart AND nowhere")
    assert list_note_codes(engine, "cart AND item") == []


def test_hits_by_meaning_alone_are_said_to_be_that(tmp_path: Path) -> None:
    text = "def remove(folder): delete directory erase folder"
    file = ShopFile("a.py", text).add_chunk("function", "remove", text)
    engine = SearchEngine.open(build_generation(tmp_path / "one", [file]))

    assert search_names(engine, "wipe") == ["remove"]
    assert list_note_codes(engine, "wipe") == ["only_by_meaning"]
    assert list_note_codes(engine, "wipe directory") == []
    assert list_note_codes(engine, "wipe", ann=False) == []
    answer = get_answer(engine, "wipe")
    assert list(answer).index("stats") < list(answer).index("code")


@pytest.mark.parametrize(
    "query",
    [r"def \w+_total", "(item|cart)+", r"cart\(", "cart.*item", "cart|item", "[a-z]+_cart", r"\bcart\b"],
)
def test_a_query_that_looks_like_a_regular_expression_is_answered_with_a_hint_to_grep(
    engine: SearchEngine, query: str
) -> None:
    notes = get_answer(engine, query)["stats"]["notes"]

    [message] = [note["message"] for note in notes if note["code"] == "looks_like_regex"]
    assert "grep_code with regex=true" in message


def test_a_regular_expression_without_a_word_is_refused_with_a_hint_to_grep() -> None:
    with pytest.raises(QueryError) as caught:
        parse_request({"query": ".*"})

    assert "grep_code" in caught.value.hint


@pytest.mark.parametrize(
    "query",
    [
        *("import java.util.*;", "what is f(x)?", r"C:\docs\src\bin", "string | number", "*.py", "list[int]", "x^2"),
        *("Session.close()", "std::vector<int>*", "/api/v1/*", "error: expected ')' before '*' token", "C++", "$HOME"),
    ],
)
def test_code_paths_and_questions_are_not_taken_for_regular_expressions(engine: SearchEngine, query: str) -> None:
    assert "looks_like_regex" not in list_note_codes(engine, query)
