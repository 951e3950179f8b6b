"""The word table: the properties of its vectors, and how words it does not have are encoded."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cleats.toolsets.code.analysis.embedding import table as word_tables
from cleats.toolsets.code.analysis.embedding.table import (
    BLOCK_TEXTS,
    DATA_FOLDER,
    DIRECTION_STEPS,
    MAX_TEXT_ROWS,
    PART_WEIGHTS,
    REPEAT_WEIGHTS,
    VECTOR_LENGTH,
    WordTable,
    find_rows,
)

ROWS_BY_WORD = {word: row for row, word in enumerate(["get", "error", "remote", "cache", "run", "id"])}
MAX_FILE_BYTES = 6 << 20


@pytest.fixture(scope="module")
def table() -> WordTable:
    return WordTable.load()


def compute_cosine(table: WordTable, left_text: str, right_text: str) -> float:
    return float(table.encode_query(left_text.split()) @ table.encode_query(right_text.split()))


def encode_texts(
    table: WordTable, texts: Sequence[Sequence[str]], names: Sequence[Sequence[str]] = (), path: Sequence[str] = ()
) -> NDArray[np.int8]:
    """Return the vectors of texts, as those of one file."""
    text_rows, name_rows, path_rows = (
        [[row for word in words for row in table.find_rows(word)] for words in part]
        for part in (texts, names or [()] * len(texts), [path])
    )
    vectors = table.encode_rows(_join_texts(text_rows), _join_texts(name_rows), _join_texts(path_rows))
    return np.frombuffer(vectors, np.int8).reshape(-1, table.dims)


def find_known_rows(*names: str) -> tuple[int, ...]:
    return tuple(ROWS_BY_WORD[name] for name in names)


def make_table(rows: Sequence[Sequence[int]], words: str) -> WordTable:
    row_by_word = {word: row for row, word in enumerate(words.split())}
    return WordTable(rows=np.array(rows, np.int8), row_by_word=row_by_word, fingerprint="x")


@pytest.mark.parametrize(
    ("near", "other", "far"),
    [
        ("delete", "remove", "matrix"),
        ("fetch url", "download page", "sort list"),
        ("auth", "login password", "pixel colour"),
        ("retry", "attempt again", "parse header"),
        ("email", "smtp", "thread"),
    ],
)
def test_what_means_the_same_is_closer_than_what_does_not(table: WordTable, near: str, other: str, far: str) -> None:
    assert compute_cosine(table, near, other) > compute_cosine(table, near, far) + 0.1


def test_words_that_are_everywhere_count_less_than_rare_ones(table: WordTable) -> None:
    lengths = [
        np.linalg.norm(table.rows[table.row_by_word[word]].astype(np.float64))
        for word in ("the", "return", "request", "cookie")
    ]

    assert all(common < rare for common, rare in pairwise(lengths))


def test_every_vector_of_known_words_has_the_promised_length(table: WordTable) -> None:
    texts = [["close", "session"], ["parse"], ["read", "file"] * 50, list(table.row_by_word)[:5000]]

    lengths = np.linalg.norm(encode_texts(table, texts).astype(np.float64), axis=1)

    assert np.allclose(lengths, VECTOR_LENGTH, rtol=0.02)


def test_a_text_without_a_known_word_is_all_zeros() -> None:
    small_table = make_table([[100, 0], [0, 100]], "left right")

    vectors = encode_texts(small_table, [[], ["\u0416\u0416\u0416"], ["qqqqzzzzqqqq"], ["left"]])

    assert vectors.any(axis=1).tolist() == [False, False, False, True]
    assert not small_table.encode_query([]).any()


def test_no_word_at_all_is_a_vector_of_zeros(table: WordTable) -> None:
    assert table.encode_rows(b"", b"", b"") == bytes(table.dims)


@given(st.permutations(["open", "the", "file", "file", "retry", "getremoteerror", "retry", "id"]))
def test_the_order_of_words_does_not_matter(words: list[str]) -> None:
    small_table = make_table([[90, 7], [3, -80], [55, 60], [-9, 120], [1, 2]], "open file retry error id")

    assert np.array_equal(encode_texts(small_table, [words]), encode_texts(small_table, [sorted(words)]))


def test_a_vector_does_not_depend_on_the_texts_beside_it(table: WordTable) -> None:
    texts = [["word", word] for word in list(table.row_by_word)[: 3 * BLOCK_TEXTS + 1]]

    together = encode_texts(table, texts)

    separate = np.vstack([encode_texts(table, [text]) for text in texts])
    assert np.array_equal(together, separate)


def test_sums_stay_exact_for_the_longest_text_with_the_longest_rows() -> None:
    names = [f"w{chr(97 + n // 676)}{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}" for n in range(9000)]
    rows = np.full((len(names), 2), 127, np.int8)
    rows[:, 1] = 1
    full_table = WordTable(rows=rows, row_by_word={n: i for i, n in enumerate(names)}, fingerprint="x")
    text_rows = np.arange(MAX_TEXT_ROWS) % len(names)

    (sums,) = full_table._sum_lines(np.zeros(MAX_TEXT_ROWS, np.int64), text_rows, 1)

    assert sums[0] == 127 * sums[1]
    assert sums[0] < 2**24


def test_repeating_a_word_counts_ever_less() -> None:
    small_table = make_table([[100, 0], [0, 100]], "left right")

    shares = [float(small_table.encode_query(["left"] * count + ["right"])[0]) for count in (1, 2, 4, 8, 64, 999)]

    gains = [later - earlier for earlier, later in pairwise(shares)]
    assert shares == sorted(shares)
    assert gains[0] > gains[1] > gains[2]
    assert gains[-1] == 0


def test_a_name_and_a_path_count_however_long_the_text_is() -> None:
    # Each word has columns of its own, and enough of them that no number reaches 127.
    rows = np.kron(np.eye(3, dtype=np.int8), np.full(16, 50, np.int8))
    small_table = make_table(rows.tolist(), "text name path")

    short, long = encode_texts(small_table, [["text"], ["text"] * 50], [["name"]] * 2, ["path"])

    assert short.tolist() == long.tolist()
    assert 127 > short[0] > short[16] > short[32] > 0


def test_a_query_points_the_same_way_as_a_text(table: WordTable) -> None:
    words = ["open", "the", "session", "and", "write", "the", "cookie"]

    direction = table.encode_query(words)

    assert direction.dtype == np.float32
    assert float(direction @ encode_texts(table, [words])[0]) / VECTOR_LENGTH == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("word", "rows"),
    [
        ("cache", ("cache",)),
        ("caches", ("cache",)),
        ("caching", ("cache",)),
        ("cached", ("cache",)),
        ("running", ("run",)),
        ("runner", ("run",)),
        ("getremoteerror", ("get", "remote", "error")),
        ("cacheid", ("cache", "id")),
        ("cache2", ("cache",)),
        ("run_id", ("run", "id")),
        ("remotely", ("remote",)),
        ("errorqx", ("error",)),
        ("xerror", ()),
        ("idid", ("id", "id")),
        ("", ()),
        ("a" * 5000, ()),
    ],
)
def test_a_word_that_is_missing_is_read_by_its_stem_or_its_pieces(word: str, rows: tuple[str, ...]) -> None:
    assert find_rows(word, ROWS_BY_WORD) == find_known_rows(*rows)


@given(st.text(max_size=60))
def test_any_text_is_read_as_known_rows(word: str) -> None:
    assert set(find_rows(word, ROWS_BY_WORD)) <= set(ROWS_BY_WORD.values())


def test_remembered_words_are_forgotten_before_they_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(word_tables, "MAX_CACHED_WORDS", 10)
    small_table = make_table([[100, 0], [0, 100]], "left right")

    first = encode_texts(small_table, [["left"]])
    encode_texts(small_table, [[f"left{number}" for number in range(100)]])

    assert np.array_equal(encode_texts(small_table, [["left"]]), first)


def test_the_shipped_files_fit_each_other_and_stay_small() -> None:
    about = json.loads((DATA_FOLDER / "table.json").read_text())
    files = [DATA_FOLDER / "vectors.npy", DATA_FOLDER / "words.txt"]
    words = files[1].read_text().split()
    content = b"".join(file.read_bytes() for file in files)

    assert about["fingerprint"] == blake2b(content, digest_size=8).hexdigest()
    assert np.load(files[0], mmap_mode="r").shape == (about["words"], about["dims"])
    assert len(set(words)) == len(words) == about["words"]
    assert len(content) < MAX_FILE_BYTES
    assert "Apache" in (DATA_FOLDER / "NOTICE").read_text()


def test_another_table_has_another_fingerprint(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.ones((1, 4), np.int8))
    (tmp_path / "words.txt").write_text("word\n")
    (tmp_path / "table.json").write_text('{"fingerprint": "abc"}')

    other_table = WordTable.load(tmp_path)

    assert other_table.fingerprint == f"{word_tables.ENCODER_VERSION}-abc"
    assert other_table.fingerprint != WordTable.load().fingerprint
    assert other_table.dims == 4


def test_rows_of_a_whole_file_give_the_vectors_of_its_texts(table: WordTable) -> None:
    rng = random.Random(7)
    for count in (1, 3, 90):
        texts = [rng.choices(range(200), k=rng.randrange(60)) for _ in range(count)]
        names = [rng.choices(range(900), k=rng.randrange(4)) for _ in range(count)]
        path = rng.choices(range(900), k=3)

        vectors = table.encode_rows(_join_texts(texts), _join_texts(names), _join_texts([path]))

        assert vectors == _encode_words(table, texts, names, path)


def test_a_very_long_text_is_cut_wherever_it_stands_in_a_file(table: WordTable) -> None:
    long = [*[5] * MAX_TEXT_ROWS, 6, 6]

    vectors = table.encode_rows(_join_texts([[7], long, long]), _join_texts([[], [], []]), b"")

    short = table.encode_rows(_join_texts([[5] * 64] * 2), _join_texts([[], []]), b"")
    assert vectors[table.dims :] == short


@given(
    lines=st.lists(
        st.tuples(
            st.lists(st.integers(0, 27_999) | st.integers(0, 3), max_size=200),
            st.lists(st.integers(0, 27_999), max_size=4),
        ),
        min_size=1,
        max_size=5,
    ),
    path=st.lists(st.integers(0, 27_999), max_size=4),
)
def test_rows_of_any_file_give_the_vectors_of_its_texts(
    table: WordTable, lines: list[tuple[list[int], list[int]]], path: list[int]
) -> None:
    texts, names = zip(*lines, strict=True)

    vectors = table.encode_rows(_join_texts(texts), _join_texts(names), _join_texts([path]))

    assert vectors == _encode_words(table, texts, names, path)


def test_numbers_at_both_ends_of_a_row_are_added_exactly(tmp_path: Path) -> None:
    rows = np.array([[-128, 127, -127, 0], [127, -128, 1, -1], [-128, -128, -128, -128]], np.int8)
    np.save(tmp_path / "vectors.npy", rows)
    (tmp_path / "words.txt").write_text("one two three\n")
    (tmp_path / "table.json").write_text('{"fingerprint": "abc"}')
    texts = [[0], [1, 1, 1], [2] * 99, [0, 2], [0, 1, 2] * 70]
    names: list[list[int]] = [[], [2], [0], [1, 1], []]
    table = WordTable.load(tmp_path)

    vectors = table.encode_rows(_join_texts(texts), _join_texts(names), _join_texts([[2]]))

    assert vectors == _encode_words(table, texts, names, [2])


def _encode_words(
    table: WordTable, texts: Sequence[Sequence[int]], names: Sequence[Sequence[int]], path: Sequence[int]
) -> bytes:
    """Return the vectors of texts as the definition says, one row and one text at a time."""
    vectors = []
    for text, name in zip(texts, names, strict=True):
        total = np.zeros(table.dims)
        for weight, rows in zip(PART_WEIGHTS, (text, name, path), strict=True):
            sums = np.zeros(table.dims)
            for row, count in Counter(rows[:MAX_TEXT_ROWS]).items():
                sums += REPEAT_WEIGHTS[min(count, len(REPEAT_WEIGHTS) - 1)] * table.rows[row].astype(np.float64)
            total += weight * np.rint(_scale(sums) * DIRECTION_STEPS)
        vectors.append(np.rint(_scale(total) * VECTOR_LENGTH).clip(-127, 127).astype(np.int8))
    return np.concatenate(vectors).tobytes()


def _scale(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return sums / max(float(np.sqrt((sums * sums).sum())), 1.0)


def _join_texts(texts: Sequence[Sequence[int]]) -> bytes:
    """Return rows with a break between two texts."""
    rows = [row for text in texts for row in (-1, *text)]
    return np.array(rows[1:], np.int32).tobytes()
