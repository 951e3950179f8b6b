"""One column of a shard: numpy reads exactly what is written without it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.code.index import column_writer
from cleats.toolsets.code.index.column_writer import ColumnPostings
from cleats.toolsets.code.index.columns import ValueColumn, map_arrays

OWNER_COUNT = 6

values = st.sampled_from(["a", "a\0", "\0a", "A", "b"]) | st.text(
    st.sampled_from("aAbßΣİ\0é\udc80\U0001d518"), min_size=1, max_size=4
)


def save_and_load(postings: ColumnPostings, folder: Path) -> ValueColumn:
    column_writer.write_arrays(folder / "column", postings.pack())
    return ValueColumn(map_arrays(folder / "column"), OWNER_COUNT)


def map_owners(column: ValueColumn) -> dict[str, list[int]]:
    vocabulary = column.vocabulary.values()
    assert [column.vocabulary[number] for number in range(len(vocabulary))] == vocabulary
    return {value: column.get_owners(number).tolist() for number, value in enumerate(vocabulary)}


@given(values_by_owner=st.lists(st.lists(values, max_size=5), max_size=OWNER_COUNT))
def test_every_value_is_read_with_those_who_have_it(
    tmp_path_factory: pytest.TempPathFactory, values_by_owner: list[list[str]]
) -> None:
    one, together = ColumnPostings(), ColumnPostings()
    for owner, had in enumerate(values_by_owner):
        one.add_owner(had, owner)
        distinct = list(dict.fromkeys(had))
        together.add_pairs(distinct, [(0, distinct.index(value)) for value in had], owner)
    folder = tmp_path_factory.mktemp("column")

    column = save_and_load(one, folder)

    expected: dict[str, set[int]] = {}
    for owner, had in enumerate(values_by_owner):
        for value in had:
            expected.setdefault(value.replace("\0", ""), set()).add(owner)
    assert map_owners(column) == {value: sorted(expected[value]) for value in sorted(expected)}
    assert together.pack() == one.pack()


def test_a_value_is_found_in_small_letters_where_it_stands(tmp_path: Path) -> None:
    postings = ColumnPostings()
    postings.add_owner(["Größe", "İstanbul", "plain"], 2)

    column = save_and_load(postings, tmp_path)

    for text, value in (("größe", "Größe"), ("stanbul", "İstanbul"), ("in", "plain")):
        (number,) = column.vocabulary.find(text.encode(), cased=False)
        assert column.vocabulary[number] == value
