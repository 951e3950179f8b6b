"""One column of a shard: what is read is exactly what was written."""

from array import array
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.code.index import column_writer
from cleats.toolsets.code.index.column_writer import ColumnPostings, FileWordPostings
from cleats.toolsets.code.index.columns import ValueColumn, group_arrays, map_arrays

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
        numbers = array("i", map(distinct.index, had))
        together.add_pairs(distinct, bytes(len(numbers) * numbers.itemsize), numbers.tobytes(), owner)
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


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c d", "b " * 300]), max_size=4), min_size=1, max_size=4))
def test_words_are_read_with_their_files_and_counts(
    tmp_path_factory: pytest.TempPathFactory, texts_by_file: list[list[str]]
) -> None:
    folder, words = tmp_path_factory.mktemp("words"), FileWordPostings()
    for texts in texts_by_file:
        words.add_file("a src", texts)

    column_writer.write_arrays(folder / "words", words.pack())

    arrays = map_arrays(folder / "words")
    column = ValueColumn(group_arrays(arrays)["word"], len(texts_by_file))
    counters = [Counter(" ".join(texts).split()) for texts in texts_by_file]
    assert arrays["lengths"].tolist() == [counts.total() for counts in counters]
    assert column.vocabulary.values() == sorted({"/a", "/src"}.union(*counters))
    for number, word in enumerate(column.vocabulary.values()):
        expected = {
            file: 1 if word.startswith("/") else min(counts[word], 255)
            for file, counts in enumerate(counters)
            if word.startswith("/") or word in counts
        }
        files, counts_of_files = column.get_counts(number)
        assert dict(zip(files.tolist(), counts_of_files.tolist(), strict=True)) == expected
