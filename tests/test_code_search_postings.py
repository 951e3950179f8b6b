"""One column of a shard: what is written without numpy is what is read with it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.code.search import arrays
from cleats.toolsets.code.search.postings import Postings
from cleats.toolsets.code.search.vocabulary import Column

OWNERS = 6

values = st.sampled_from(["a", "a\0", "\0a", "A", "b"]) | st.text(
    st.sampled_from("aAbßΣİ\0é\udc80\U0001d518"), min_size=1, max_size=4
)


def read(postings: Postings, folder: Path) -> Column:
    arrays.save(folder / "column", postings.stored())
    return Column(arrays.load(folder / "column"), OWNERS)


def owners(column: Column) -> dict[str, list[int]]:
    known = column.vocabulary.values()
    assert [column.vocabulary[number] for number in range(len(known))] == known
    return {value: column.owners(number).tolist() for number, value in enumerate(known)}


@given(given=st.lists(st.lists(values, max_size=5), max_size=OWNERS))
def test_every_value_is_read_with_those_who_have_it(
    tmp_path_factory: pytest.TempPathFactory, given: list[list[str]]
) -> None:
    one, together = Postings(), Postings()
    for owner, had in enumerate(given):
        one.one(had, owner)
        distinct = list(dict.fromkeys(had))
        together.add(distinct, [(0, distinct.index(value)) for value in had], owner)
    folder = tmp_path_factory.mktemp("column")

    column = read(one, folder)

    expected: dict[str, set[int]] = {}
    for owner, had in enumerate(given):
        for value in had:
            expected.setdefault(value.replace("\0", ""), set()).add(owner)
    assert owners(column) == {value: sorted(expected[value]) for value in sorted(expected)}
    assert together.stored() == one.stored()


def test_a_value_is_found_in_small_letters_where_it_stands(tmp_path: Path) -> None:
    postings = Postings()
    postings.one(["Größe", "İstanbul", "plain"], 2)

    column = read(postings, tmp_path)

    for text, value in (("größe", "Größe"), ("stanbul", "İstanbul"), ("in", "plain")):
        (number,) = column.vocabulary.find(text.encode(), cased=False)
        assert column.vocabulary[number] == value
