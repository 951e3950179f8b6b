"""The query language: the meaning of a text, and the errors of one that cannot be parsed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code.index.tokens import STOP_WORDS
from cleats.toolsets.code.query.parser import parse_query
from cleats.toolsets.code.query.tree import (
    And,
    Not,
    Or,
    ParsedQuery,
    Phrase,
    QueryError,
    QueryNode,
    Question,
    Term,
    iterate_leaves,
    join_nodes,
)

TERM_B, TERM_C, TERM_D = Term("b"), Term("c"), Term("d")


def make_question(words: str, *phrases: str, without: tuple[Term | Phrase, ...] = ()) -> Question:
    """Return a question with these words and phrases."""
    return Question(tuple(map(Term, words.split())), tuple(map(Phrase, phrases)), without)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b", make_question("b")),
        ("b c  d", make_question("b c d")),
        ("search and replace", make_question("search and replace")),
        ("where is the parser?", make_question("where is the parser?")),
        ("what's up", make_question("what's up")),
        ("rock 'n roll", make_question("rock 'n roll")),
        ("'b c' d", make_question("'b c' d")),
        ("foo(bar)", make_question("foo(bar)")),
        ("get()", make_question("get()")),
        ("(b)", make_question("(b)")),
        ("between Mount and Host (routing)?", make_question("between Mount and Host (routing)?")),
        ("b (c", make_question("b (c")),
        ("b )", make_question("b")),
        ("b ()", make_question("b")),
        ("((b) c", make_question("((b) c")),
        ("b - c", make_question("b c")),
        ("b != c", make_question("b c")),
        ("--verbose b", make_question("--verbose b")),
        ("python -m mypy entry", make_question("python -m mypy entry")),
        ("error -32601", make_question("error -32601")),
        ("well-known", make_question("well-known")),
        ("AND b", make_question("and b")),
        ("b OR", make_question("b or")),
        ("b OR ?", make_question("b or")),
        ("NOT", make_question("not")),
        ('how is "reload" handled', make_question("how is handled", "reload")),
        ('the user\'s "session" cookie', make_question("the user's cookie", "session")),
        ('adapters for "x"', make_question('adapters for x"')),
        ('for +: "int" and "str"', make_question("for and", "int", "str")),
        ('("not found")', make_question("", "not found")),
        ('left "open', make_question("left open")),
        ('left "!open', make_question("left open")),
        ('an inch is " long and " wide', make_question("an inch is long and wide")),
        ('key="the value"', make_question('key="the value"')),
        ('b "!!"', make_question("b")),
        ('"b c"', make_question("", "b c")),
        ('"this AND that"', make_question("", "this AND that")),
        (r'"say \"b\""', make_question("", 'say "b"')),
        ('"AND"', make_question("", "AND")),
        ("parse -test", make_question("parse", without=(Term("test"),))),
        ("parse !test", make_question("parse", without=(Term("test"),))),
        ("-test", make_question("", without=(Term("test"),))),
        ('-"not found"', make_question("", without=(Phrase("not found"),))),
        ("*", make_question("")),
        ("* -test", make_question("", without=(Term("test"),))),
        ("(" * 50 + "b" + ")" * 50, make_question("(" * 50 + "b" + ")" * 50)),
    ],
)
def test_a_query_without_operators_is_a_question_whatever_signs_it_has(text: str, expected: ParsedQuery) -> None:
    assert parse_query(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b AND c", And((TERM_B, TERM_C))),
        ("b c OR d", Or((And((TERM_B, TERM_C)), TERM_D))),
        ("b OR c AND d", Or((TERM_B, And((TERM_C, TERM_D))))),
        ("NOT b AND c", And((Not(TERM_B), TERM_C))),
        ("NOT (b AND c)", Not(And((TERM_B, TERM_C)))),
        ("b (c OR d)", And((TERM_B, Or((TERM_C, TERM_D))))),
        ("b AND -c", And((TERM_B, Not(TERM_C)))),
        ("b AND !c", And((TERM_B, Not(TERM_C)))),
        ("NOT b", Not(TERM_B)),
        ("-(b OR c)", Not(Or((TERM_B, TERM_C)))),
        ("NOT NOT b", Not(Not(TERM_B))),
        ('b AND -"c d"', And((TERM_B, Not(Phrase("c d"))))),
        ('"b" OR c', Or((Phrase("b"), TERM_C))),
        ("(foo(bar) OR b)", Or((Term("foo(bar)"), TERM_B))),
        ("((b) AND (c))", And((TERM_B, TERM_C))),
        ("b\tAND\nc", And((TERM_B, TERM_C))),
        ("the b AND a c", And((TERM_B, TERM_C))),
        ("the AND b", make_question("b")),
        ("the AND of", And((Term("the"), Term("of")))),
        ('"the" AND b', And((Phrase("the"), TERM_B))),
    ],
)
def test_a_query_with_an_operator_is_a_formula(text: str, expected: ParsedQuery) -> None:
    assert parse_query(text) == expected


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", 0, "no word"),
        (" ?! - ", 0, "no word"),
        ('b AND "c', 6, "quote is left open"),
        ("b AND (c", 6, "parenthesis is left open"),
        ("b AND c )", 8, "has no opening one"),
        ("b AND c ()", 8, "group is empty"),
        ("b OR OR c", 5, "OR has no operand"),
        ("(b OR ) c", 6, ") has no operand"),
        ('b AND "!!" c', 6, "no word in it"),
        ("(" * 50 + "b AND c" + ")" * 50, 41, "too deeply"),
        ("b AND " * 401 + "b", 2400, "too many"),
    ],
)
def test_what_cannot_be_read_says_where(text: str, position: int, words: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_query(text)

    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.position == position
    assert words in caught.value.message
    assert caught.value.hint


def test_a_question_can_be_asked_without_its_phrases() -> None:
    question = parse_query('how is "not found" handled -test')

    assert isinstance(question, Question)
    assert question.loosen_phrases() == make_question("how is handled not found", without=(Term("test"),))


def test_a_long_question_stays_a_question() -> None:
    query = parse_query("word " * 2000)

    assert isinstance(query, Question)
    assert len(query.terms) == 2000


def test_what_a_hit_may_have_leaves_out_what_it_may_not() -> None:
    query = parse_query('b -c NOT (d OR NOT "e f")')
    question = parse_query('b "c d" -test')

    assert list(iterate_leaves(query)) == [TERM_B, Phrase("e f")]
    assert list(iterate_leaves(query, negated=True)) == [TERM_C, TERM_D]
    assert list(iterate_leaves(question)) == [TERM_B, Phrase("c d")]
    assert list(iterate_leaves(question, negated=True)) == [Term("test")]


words = (
    st.from_regex(r"[a-z_][a-z0-9_.]{0,8}", fullmatch=True)
    .filter(lambda text: any(map(str.isalnum, text)) and text not in STOP_WORDS)
    .map(Term)
)
phrases = (
    st.text(min_size=1, max_size=12).map(str.strip).filter(lambda text: sum(map(str.isalnum, text)) > 1).map(Phrase)
)
trees: st.SearchStrategy[QueryNode] = st.recursive(
    words | phrases,
    lambda inner: (
        inner.map(Not)
        | st.lists(inner, min_size=2, max_size=3).map(lambda nodes: join_nodes(And, nodes))
        | st.lists(inner, min_size=2, max_size=3).map(lambda nodes: join_nodes(Or, nodes))
    ),
    max_leaves=8,
)


@given(trees)
def test_a_tree_reads_back_from_its_own_text(tree: QueryNode) -> None:
    expected: QueryNode | Question = tree
    if isinstance(tree, Term):
        expected = Question((tree,))
    elif isinstance(tree, Phrase):
        expected = Question((), (tree,))

    assert parse_query(str(tree)) == expected


@given(st.text(max_size=60).filter(lambda text: any(map(str.isalnum, text))))
def test_no_text_without_operators_is_an_error(text: str) -> None:
    query = parse_query(text.lower())

    assert isinstance(query, Question)


@given(st.text(alphabet=st.sampled_from("ab \"'()-!\\ANDORT.é測\n"), max_size=40))
def test_any_text_is_read_or_refused_and_what_is_read_reads_the_same_again(text: str) -> None:
    try:
        query = parse_query(text)
    except QueryError:
        return

    assert parse_query(str(query)) == query
