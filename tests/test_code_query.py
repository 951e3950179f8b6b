"""The query language: what a text means, and where it cannot be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code.search.query import (
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
    parse,
)

A, B, C = Term("a"), Term("b"), Term("c")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a", Question((A,))),
        ("a b  c", Question((A, B, C))),
        ("search and replace", Question((Term("search"), Term("and"), Term("replace")))),
        (
            "where is the parser?",
            Question((Term("where"), Term("is"), Term("the"), Term("parser?"))),
        ),
        ("what's up", Question((Term("what's"), Term("up")))),
        ("rock 'n roll", Question((Term("rock"), Term("'n"), Term("roll")))),
        ("foo(bar)", Question((Term("foo(bar)"),))),
        ("get()", Question((Term("get()"),))),
        ("a - b", Question((A, B))),
        ("a != b", Question((A, B))),
        ("--verbose a", Question((Term("--verbose"), A))),
        ("well-known", Question((Term("well-known"),))),
        ("(a)", Question((A,))),
        ("a AND b", And((A, B))),
        ("a b OR c", Or((And((A, B)), C))),
        ("a OR b AND c", Or((A, And((B, C))))),
        ("NOT a AND b", And((Not(A), B))),
        ("NOT (a AND b)", Not(And((A, B)))),
        ("a (b OR c)", And((A, Or((B, C))))),
        ("a -b", And((A, Not(B)))),
        ("a !b", And((A, Not(B)))),
        ("-a", Not(A)),
        ("-(a OR b)", Not(Or((A, B)))),
        ('-"a b"', Not(Phrase("a b"))),
        ("!'a b'", Not(Phrase("a b"))),
        ("NOT NOT a", Not(Not(A))),
        ('"a b"', Phrase("a b")),
        ("'a b' c", And((Phrase("a b"), C))),
        ("'it isn't' c", And((Phrase("it isn't"), C))),
        (r'"say \"a\""', Phrase('say "a"')),
        ('"AND"', Phrase("AND")),
        ("(foo(bar) OR b)", Or((Term("foo(bar)"), B))),
        ("((a) AND (b))", And((A, B))),
        ("a\tAND\nb", And((A, B))),
    ],
)
def test_a_query_means_what_it_looks_like(text: str, meant: Query) -> None:
    assert parse(text) == meant


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", 0, "no word"),
        (" ?! - ", 0, "no word"),
        ('a "b', 2, "quote is left open"),
        ("a (b", 2, "parenthesis is left open"),
        ("a b)", None, ""),
        ("a )", 2, "closes nothing"),
        ("a ()", 2, "group is empty"),
        ("a OR", 4, "missing at the end"),
        ("AND a", 0, "AND has nothing"),
        ("a OR OR b", 5, "OR has nothing"),
        ("NOT", 3, "missing at the end"),
        ("(a OR) b", 5, ") has nothing"),
        ('a "!!"', 2, "no word in it"),
        ("(" * 50 + "a" + ")" * 50, 41, "too deeply"),
        ("a AND " * 401 + "a", 2400, "too many"),
    ],
)
def test_what_cannot_be_read_says_where(text: str, position: int | None, words: str) -> None:
    if position is None:
        assert parse(text) == Question((A, Term("b)")))  # a smiley is no formula
        return

    with pytest.raises(QueryError) as caught:
        parse(text)

    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.position == position
    assert words in caught.value.message
    assert caught.value.hint


def test_a_long_question_stays_a_question() -> None:
    meant = parse("word " * 2000)

    assert isinstance(meant, Question)
    assert len(meant.terms) == 2000


def test_what_a_hit_may_have_leaves_out_what_it_may_not() -> None:
    meant = parse('a -b NOT (c OR NOT "d e")')

    assert list(leaves(meant)) == [A, Phrase("d e")]
    assert list(leaves(meant, negated=True)) == [B, C]


words = st.from_regex(r"[a-z_][a-z0-9_.]{0,8}", fullmatch=True).map(Term)
phrases = st.text(min_size=1, max_size=12).filter(lambda t: any(map(str.isalnum, t))).map(Phrase)
trees: st.SearchStrategy[Node] = st.recursive(
    words.filter(lambda term: any(map(str.isalnum, term.text))) | phrases,
    lambda inner: (
        inner.map(Not)
        | st.lists(inner, min_size=2, max_size=3).map(lambda nodes: conjunction(*nodes))
        | st.lists(inner, min_size=2, max_size=3).map(lambda nodes: disjunction(*nodes))
    ),
    max_leaves=8,
)


@given(trees)
def test_a_tree_reads_back_from_its_own_text(tree: Node) -> None:
    expected = Question((tree,)) if isinstance(tree, Term) else tree

    assert parse(str(tree)) == expected


@given(st.text(alphabet=st.sampled_from("ab \"'()-!\\ANDORT.é測\n"), max_size=40))
def test_any_text_is_read_or_refused_and_what_is_read_reads_the_same_again(text: str) -> None:
    try:
        meant = parse(text)
    except QueryError:
        return

    assert parse(str(meant)) == meant
