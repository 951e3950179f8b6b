"""Text as words: every way to write a name gives the same ones."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.code.search import tokens


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("HTTPServer", ["http", "server"]),
        ("http_server", ["http", "server"]),
        ("httpServer2go", ["http", "server", "2", "go"]),
        ("parseURLs", ["parse", "urls"]),
        ("userIDs", ["user", "ids"]),
        ("__init__", ["init"]),
        ("SCREAMING_SNAKE", ["screaming", "snake"]),
        ("sha256", ["sha", "256"]),
        ("don't stop", ["don", "t", "stop"]),
        ("a.b::c->d", ["a", "b", "c", "d"]),
        ("ÜberGröße", ["über", "größe"]),
        ("测试Code", ["测", "试", "code"]),
        ("ﬁle", ["file"]),
        ("___ ... !?", []),
        ("x" * 129, []),
    ],
)
def test_a_name_is_split_where_its_words_begin(text: str, words: list[str]) -> None:
    assert tokens.pieces(text) == words


def test_a_text_has_four_forms() -> None:
    [made] = tokens.streams(["parsing HTTPErrors in load_all"])

    assert made.words == "parsing http errors in load all"
    assert made.stems == "pars http error in load all"
    assert made.cased == "parsing HTTP Errors in load all"
    assert made.whole.split() == ["httperrors", "loadall"]


def test_words_of_one_stem_are_the_same_and_numbers_are_themselves() -> None:
    assert {tokens.stem(word) for word in ("connect", "connected", "connection")} == {"connect"}
    assert tokens.stem("2026") == "2026"
    assert tokens.stem("größe") == "größe"


@given(st.text(max_size=200))
def test_the_forms_of_any_text_go_word_by_word(text: str) -> None:
    [made] = tokens.streams([text])

    assert len(made.words.split()) == len(made.stems.split()) == len(made.cased.split())
    assert made.words == made.cased.lower()
    assert tokens.pieces(text) == made.words.split()
    assert all(word.isalnum() for word in made.words.split())


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8))
def test_texts_taken_apart_together_are_the_same_as_alone(texts: list[str]) -> None:
    together = tokens.streams(texts)

    assert together == [made for text in texts for made in tokens.streams([text])]
    assert tokens.stems(texts) == [made.stems for made in together]


def test_memory_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MEMORY", 10)
    memo = tokens._Memo(" ".join)  # its own: others may know these words already

    found = [memo[f"word{number}"] for number in range(100)]

    assert found == [f"word {number}" for number in range(100)]
    assert len(memo) <= 10


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_words_are_found_alike_whatever_else_is_in_the_text(texts: list[str]) -> None:
    texts = [text.replace(tokens.BREAK, " ") for text in texts]
    normal = [unicodedata.normalize("NFKC", text) for text in texts]

    found = " ".join(tokens.together(texts)).split(tokens.BREAK)

    assert [each.split() for each in found] == [re.findall(r"\w+", text) for text in normal]
