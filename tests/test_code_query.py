"""The query language: what a text means, and where it cannot be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code.search.query import parse
from cleats.toolsets.code.search.query_tree import (
    And,
    Node,
    Not,
    Or,
    Phrase,
    Query,
    QueryError,
    Question,
    Term,
    conjunction,
    disjunction,
    leaves,
)
from cleats.toolsets.code.search.tokens import STOP

B, C, D = Term("b"), Term("c"), Term("d")


def asks(words: str, *phrases: str, without: tuple[Term | Phrase, ...] = ()) -> Question:
    """A question of these words."""
    return Question(tuple(map(Term, words.split())), tuple(map(Phrase, phrases)), without)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("b", asks("b")),
        ("b c  d", asks("b c d")),
        ("search and replace", asks("search and replace")),
        ("where is the parser?", asks("where is the parser?")),
        ("what's up", asks("what's up")),
        ("rock 'n roll", asks("rock 'n roll")),
        ("'b c' d", asks("'b c' d")),
        ("foo(bar)", asks("foo(bar)")),
        ("get()", asks("get()")),
        ("(b)", asks("(b)")),
        ("between Mount and Host (routing)?", asks("between Mount and Host (routing)?")),
        ("b (c", asks("b (c")),
        ("b )", asks("b")),
        ("b ()", asks("b")),
        ("((b) c", asks("((b) c")),
        ("b - c", asks("b c")),
        ("b != c", asks("b c")),
        ("--verbose b", asks("--verbose b")),
        ("python -m mypy entry", asks("python -m mypy entry")),
        ("error -32601", asks("error -32601")),
        ("well-known", asks("well-known")),
        ("AND b", asks("and b")),
        ("b OR", asks("b or")),
        ("b OR ?", asks("b or")),
        ("NOT", asks("not")),
        ('how is "reload" handled', asks("how is handled", "reload")),
        ('the user\'s "session" cookie', asks("the user's cookie", "session")),
        ('adapters for "x"', asks('adapters for x"')),
        ('for +: "int" and "str"', asks("for and", "int", "str")),
        ('("not found")', asks("", "not found")),
        ('left "open', asks("left open")),
        ('left "!open', asks("left open")),
        ('an inch is " long and " wide', asks("an inch is long and wide")),
        ('key="the value"', asks('key="the value"')),
        ('b "!!"', asks("b")),
        ('"b c"', asks("", "b c")),
        ('"this AND that"', asks("", "this AND that")),
        (r'"say \"b\""', asks("", 'say "b"')),
        ('"AND"', asks("", "AND")),
        ("parse -test", asks("parse", without=(Term("test"),))),
        ("parse !test", asks("parse", without=(Term("test"),))),
        ("-test", asks("", without=(Term("test"),))),
        ('-"not found"', asks("", without=(Phrase("not found"),))),
        ("*", asks("")),
        ("* -test", asks("", without=(Term("test"),))),
        ("(" * 50 + "b" + ")" * 50, asks("(" * 50 + "b" + ")" * 50)),
    ],
)
def test_a_query_without_operators_is_a_question_whatever_signs_it_has(
    text: str, meant: Query
) -> None:
    assert parse(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("b AND c", And((B, C))),
        ("b c OR d", Or((And((B, C)), D))),
        ("b OR c AND d", Or((B, And((C, D))))),
        ("NOT b AND c", And((Not(B), C))),
        ("NOT (b AND c)", Not(And((B, C)))),
        ("b (c OR d)", And((B, Or((C, D))))),
        ("b AND -c", And((B, Not(C)))),
        ("b AND !c", And((B, Not(C)))),
        ("NOT b", Not(B)),
        ("-(b OR c)", Not(Or((B, C)))),
        ("NOT NOT b", Not(Not(B))),
        ('b AND -"c d"', And((B, Not(Phrase("c d"))))),
        ('"b" OR c', Or((Phrase("b"), C))),
        ("(foo(bar) OR b)", Or((Term("foo(bar)"), B))),
        ("((b) AND (c))", And((B, C))),
        ("b\tAND\nc", And((B, C))),
        ("the b AND a c", And((B, C))),
        ("the AND b", asks("b")),
        ("the AND of", And((Term("the"), Term("of")))),
        ('"the" AND b', And((Phrase("the"), B))),
    ],
)
def test_a_query_with_an_operator_is_a_formula(text: str, meant: Query) -> None:
    assert parse(text) == meant


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", 0, "no word"),
        (" ?! - ", 0, "no word"),
        ('b AND "c', 6, "quote is left open"),
        ("b AND (c", 6, "parenthesis is left open"),
        ("b AND c )", 8, "closes nothing"),
        ("b AND c ()", 8, "group is empty"),
        ("b OR OR c", 5, "OR has nothing"),
        ("(b OR ) c", 6, ") has nothing"),
        ('b AND "!!" c', 6, "no word in it"),
        ("(" * 50 + "b AND c" + ")" * 50, 41, "too deeply"),
        ("b AND " * 401 + "b", 2400, "too many"),
    ],
)
def test_what_cannot_be_read_says_where(text: str, position: int, words: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)

    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.position == position
    assert words in caught.value.message
    assert caught.value.hint


def test_a_question_can_be_asked_without_its_phrases() -> None:
    question = parse('how is "not found" handled -test')

    assert isinstance(question, Question)
    assert question.loosened() == asks("how is handled not found", without=(Term("test"),))


def test_a_long_question_stays_a_question() -> None:
    meant = parse("word " * 2000)

    assert isinstance(meant, Question)
    assert len(meant.terms) == 2000


def test_what_a_hit_may_have_leaves_out_what_it_may_not() -> None:
    meant = parse('b -c NOT (d OR NOT "e f")')
    question = parse('b "c d" -test')

    assert list(leaves(meant)) == [B, Phrase("e f")]
    assert list(leaves(meant, negated=True)) == [C, D]
    assert list(leaves(question)) == [B, Phrase("c d")]
    assert list(leaves(question, negated=True)) == [Term("test")]


words = (
    st.from_regex(r"[a-z_][a-z0-9_.]{0,8}", fullmatch=True)
    .filter(lambda text: any(map(str.isalnum, text)) and text not in STOP)
    .map(Term)
)
phrases = (
    st.text(min_size=1, max_size=12)
    .map(str.strip)
    .filter(lambda text: sum(map(str.isalnum, text)) > 1)
    .map(Phrase)
)
trees: st.SearchStrategy[Node] = st.recursive(
    words | phrases,
    lambda inner: (
        inner.map(Not)
        | st.lists(inner, min_size=2, max_size=3).map(lambda nodes: conjunction(*nodes))
        | st.lists(inner, min_size=2, max_size=3).map(lambda nodes: disjunction(*nodes))
    ),
    max_leaves=8,
)


@given(trees)
def test_a_tree_reads_back_from_its_own_text(tree: Node) -> None:
    expected: Node | Question = tree
    if isinstance(tree, Term):
        expected = Question((tree,))
    elif isinstance(tree, Phrase):
        expected = Question((), (tree,))

    assert parse(str(tree)) == expected


@given(st.text(max_size=60).filter(lambda text: any(map(str.isalnum, text))))
def test_no_text_without_operators_is_an_error(text: str) -> None:
    meant = parse(text.lower())

    assert isinstance(meant, Question)


@given(st.text(alphabet=st.sampled_from("ab \"'()-!\\ANDORT.é測\n"), max_size=40))
def test_any_text_is_read_or_refused_and_what_is_read_reads_the_same_again(text: str) -> None:
    try:
        meant = parse(text)
    except QueryError:
        return

    assert parse(str(meant)) == meant
