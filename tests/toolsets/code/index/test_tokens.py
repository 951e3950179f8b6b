"""Text as words: every spelling of a name gives the same words."""

import re
import unicodedata
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.code.index import tokens


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
    assert tokens.tokenize_text(text) == words


NO_ROW = array("i", [-1])


def make_memo() -> tokens.WordMemo:
    return tokens.WordMemo(lambda part: map(ord, part), NO_ROW.tobytes())


def make_streams(texts: list[str]) -> list[tokens.TokenStreams]:
    return tokens.streams_from_forms(make_memo().get_forms(texts))


def test_a_text_has_four_forms() -> None:
    [forms] = make_streams(["parsing HTTPErrors in load_all"])

    assert forms.words == "parsing http errors in load all"
    assert forms.stems == "pars http error in load all"
    assert forms.cased == "parsing HTTP Errors in load all"
    assert forms.whole.split() == ["httperrors", "loadall"]


def test_words_of_one_stem_are_the_same_and_numbers_are_themselves() -> None:
    assert {tokens.stem_word(word) for word in ("connect", "connected", "connection")} == {"connect"}
    assert tokens.stem_word("2026") == "2026"
    assert tokens.stem_word("größe") == "größe"


@given(st.text(max_size=200))
def test_the_forms_of_any_text_go_word_by_word(text: str) -> None:
    [forms] = make_streams([text])

    assert len(forms.words.split()) == len(forms.stems.split()) == len(forms.cased.split())
    assert forms.words == forms.cased.lower()
    assert tokens.tokenize_text(text) == forms.words.split()
    assert all(word.isalnum() for word in forms.words.split())


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8))
def test_texts_taken_apart_together_are_the_same_as_alone(texts: list[str]) -> None:
    together = make_streams(texts)

    assert together == [forms for text in texts for forms in make_streams([text])]
    assert make_memo().stem_texts(texts) == [forms.stems for forms in together]


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8))
def test_rows_of_texts_are_those_of_their_words(texts: list[str]) -> None:
    memo = make_memo()

    rows = array("i", tokens.join_rows(memo.get_forms(texts)))

    expected = array("i")
    for text in texts:
        expected += array("i", map(ord, "".join(tokens.tokenize_text(text)))) + NO_ROW
    assert rows == expected[:-1]


def test_memory_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MAX_MEMO_WORDS", 10)
    memo = make_memo()

    values = [memo[f"word{number}"].cased for number in range(100)]

    assert values == [f"word {number}" for number in range(100)]
    assert len(memo) <= 10


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_words_are_found_alike_whatever_else_is_in_the_text(texts: list[str]) -> None:
    texts = [text.replace(tokens.TEXT_BREAK, " ") for text in texts]
    normal = [unicodedata.normalize("NFKC", text) for text in texts]

    joined_texts = " ".join(tokens.split_texts(texts)).split(tokens.TEXT_BREAK)

    assert [joined_text.split() for joined_text in joined_texts] == [re.findall(r"\w+", text) for text in normal]
