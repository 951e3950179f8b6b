"""The word table: what its vectors promise, and how words it does not have are read."""

import json
import random
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.toolsets.code.dense import measures
from cleats.toolsets.code.dense.lanes import Lanes
from cleats.toolsets.code.dense.measures import DATA, LENGTH, MOST_ROWS
from cleats.toolsets.code.dense.table import BLOCK, WordTable
from cleats.toolsets.code.dense.words import rows_of

KNOWN = {word: row for row, word in enumerate(["get", "error", "remote", "cache", "run", "id"])}
LARGEST_FILE = 6 << 20


@pytest.fixture(scope="module")
def table() -> WordTable:
    return WordTable.load()


@pytest.fixture(scope="module")
def lanes() -> Lanes:
    return Lanes.load()


def cosine(table: WordTable, left: str, right: str) -> float:
    return float(table.encode_query(left.split()) @ table.encode_query(right.split()))


def words_of(*names: str) -> tuple[int, ...]:
    return tuple(KNOWN[name] for name in names)


def small(rows: Sequence[Sequence[int]], words: str) -> WordTable:
    known = {word: row for row, word in enumerate(words.split())}
    return WordTable(rows=np.array(rows, np.int8), known=known, fingerprint="x")


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
def test_what_means_the_same_is_closer_than_what_does_not(
    table: WordTable, near: str, other: str, far: str
) -> None:
    assert cosine(table, near, other) > cosine(table, near, far) + 0.1


def test_words_that_are_everywhere_count_less_than_rare_ones(table: WordTable) -> None:
    lengths = [
        np.linalg.norm(table.rows[table.known[word]].astype(np.float64))
        for word in ("the", "return", "request", "cookie")
    ]

    assert all(common < rare for common, rare in pairwise(lengths))


def test_every_vector_of_known_words_has_the_promised_length(table: WordTable) -> None:
    texts = [["close", "session"], ["parse"], ["read", "file"] * 50, list(table.known)[:5000]]

    lengths = np.linalg.norm(table.encode(texts).astype(np.float64), axis=1)

    assert np.allclose(lengths, LENGTH, rtol=0.02)


def test_a_text_without_a_known_word_is_all_zeros() -> None:
    made = small([[100, 0], [0, 100]], "left right")

    vectors = made.encode([[], ["\u0416\u0416\u0416"], ["qqqqzzzzqqqq"], ["left"]])

    assert vectors.any(axis=1).tolist() == [False, False, False, True]
    assert not made.encode_query([]).any()


def test_no_text_at_all_is_no_vector(table: WordTable) -> None:
    assert table.encode([]).shape == (0, table.dims)


@given(st.permutations(["open", "the", "file", "file", "retry", "getremoteerror", "retry", "id"]))
def test_the_order_of_words_does_not_matter(words: list[str]) -> None:
    made = small([[90, 7], [3, -80], [55, 60], [-9, 120], [1, 2]], "open file retry error id")

    assert np.array_equal(made.encode([words]), made.encode([sorted(words)]))


def test_a_vector_does_not_depend_on_the_texts_beside_it(table: WordTable) -> None:
    texts = [["word", word] for word in list(table.known)[: 3 * BLOCK + 1]]

    together = table.encode(texts)

    alone = np.vstack([table.encode([text]) for text in texts])
    assert np.array_equal(together, alone)


def test_sums_stay_exact_for_the_longest_text_with_the_longest_rows() -> None:
    names = [
        f"w{chr(97 + n // 676)}{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}" for n in range(9000)
    ]
    rows = np.full((len(names), 2), 127, np.int8)
    rows[:, 1] = 1
    made = WordTable(rows=rows, known={n: i for i, n in enumerate(names)}, fingerprint="x")
    text = (names * 4)[:MOST_ROWS]

    (sums,) = made._sums([text])

    assert sums[0] == 127 * sums[1]
    assert sums[0] < 2**24


def test_repeating_a_word_counts_ever_less() -> None:
    made = small([[100, 0], [0, 100]], "left right")

    shares = [
        float(made.encode_query(["left"] * count + ["right"])[0]) for count in (1, 2, 4, 8, 64, 999)
    ]

    gains = [later - earlier for earlier, later in pairwise(shares)]
    assert shares == sorted(shares)
    assert gains[0] > gains[1] > gains[2]
    assert gains[-1] == 0


def test_a_name_and_a_path_count_however_long_the_text_is() -> None:
    # Each word has columns of its own, and enough of them that no number reaches 127.
    rows = np.kron(np.eye(3, dtype=np.int8), np.full(16, 50, np.int8))
    made = small(rows.tolist(), "text name path")

    short, long = made.encode([["text"], ["text"] * 50], [["name"]] * 2, [["path"]] * 2)

    assert short.tolist() == long.tolist()
    assert 127 > short[0] > short[16] > short[32] > 0


def test_a_query_points_the_same_way_as_a_text(table: WordTable) -> None:
    words = ["open", "the", "session", "and", "write", "the", "cookie"]

    direction = table.encode_query(words)

    assert direction.dtype == np.float32
    assert float(direction @ table.encode([words])[0]) / LENGTH == pytest.approx(1, abs=0.01)


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
def test_a_word_that_is_missing_is_read_by_its_stem_or_its_pieces(
    word: str, rows: tuple[str, ...]
) -> None:
    assert rows_of(word, KNOWN) == words_of(*rows)


@given(st.text(max_size=60))
def test_any_text_is_read_as_known_rows(word: str) -> None:
    assert set(rows_of(word, KNOWN)) <= set(KNOWN.values())


def test_remembered_words_are_forgotten_before_they_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measures, "MEMORY", 10)
    made = small([[100, 0], [0, 100]], "left right")

    first = made.encode([["left"]])
    made.encode([[f"left{number}" for number in range(100)]])

    assert np.array_equal(made.encode([["left"]]), first)


def test_the_shipped_files_fit_each_other_and_stay_small() -> None:
    about = json.loads((DATA / "table.json").read_text())
    files = [DATA / "vectors.npy", DATA / "words.txt"]
    words = files[1].read_text().split()
    content = b"".join(file.read_bytes() for file in files)

    assert about["fingerprint"] == blake2b(content, digest_size=8).hexdigest()
    assert np.load(files[0], mmap_mode="r").shape == (about["words"], about["dims"])
    assert len(set(words)) == len(words) == about["words"]
    assert len(content) < LARGEST_FILE
    assert "Apache" in (DATA / "NOTICE").read_text()


def test_another_table_has_another_fingerprint(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.ones((1, 4), np.int8))
    (tmp_path / "words.txt").write_text("word\n")
    (tmp_path / "table.json").write_text('{"fingerprint": "abc"}')

    made = WordTable.load(tmp_path)

    assert made.fingerprint == f"{measures.ENCODER}-abc"
    assert made.fingerprint != WordTable.load().fingerprint
    assert made.dims == 4


def test_rows_of_a_whole_file_give_the_vectors_of_its_texts(table: WordTable) -> None:
    chance = random.Random(7)
    for count in (1, 3, 90):
        texts = [chance.choices(range(200), k=chance.randrange(60)) for _ in range(count)]
        names = [chance.choices(range(900), k=chance.randrange(4)) for _ in range(count)]
        path = chance.choices(range(900), k=3)
        words = list(table.known)

        made = table.encode_rows(_lines(texts), _lines(names), _lines([path]))

        spelt, named, placed = (
            [[words[row] for row in rows] for rows in some] for some in (texts, names, [path])
        )
        assert made == table.encode(spelt, named, placed * count).tobytes()


def test_a_very_long_text_is_cut_wherever_it_stands_in_a_file(table: WordTable) -> None:
    long = [*[5] * MOST_ROWS, 6, 6]

    made = table.encode_rows(_lines([[7], long, long]), _lines([[], [], []]), b"")

    short = table.encode_rows(_lines([[5] * 64] * 2), _lines([[], []]), b"")
    assert made[table.dims :] == short


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
def test_without_numpy_the_same_vectors_are_made(
    table: WordTable, lanes: Lanes, lines: list[tuple[list[int], list[int]]], path: list[int]
) -> None:
    texts, names = (_lines(some) for some in zip(*lines, strict=True))

    made = lanes.encode_rows(texts, names, _lines([path]))

    assert made == table.encode_rows(texts, names, _lines([path]))


def test_without_numpy_the_longest_text_is_cut_where_it_always_is(
    table: WordTable, lanes: Lanes
) -> None:
    every = [row % 28_000 for row in range(MOST_ROWS)]
    texts = _lines([[*every, 7, 7], [*[5] * MOST_ROWS, 6], []])

    made = lanes.encode_rows(texts, _lines([[], [1], []]), b"")

    assert made == table.encode_rows(texts, _lines([[], [1], []]), b"")


def test_numbers_at_both_ends_of_a_row_stay_in_their_lanes(tmp_path: Path) -> None:
    rows = np.array([[-128, 127, -127, 0], [127, -128, 1, -1], [-128, -128, -128, -128]], np.int8)
    np.save(tmp_path / "vectors.npy", rows)
    (tmp_path / "words.txt").write_text("one two three\n")
    (tmp_path / "table.json").write_text('{"fingerprint": "abc"}')
    texts = _lines([[0], [1, 1, 1], [2] * 99, [0, 2], [0, 1, 2] * 70])
    names = _lines([[], [2], [0], [1, 1], []])

    made = Lanes.load(tmp_path).encode_rows(texts, names, _lines([[2]]))

    assert made == WordTable.load(tmp_path).encode_rows(texts, names, _lines([[2]]))


def _lines(texts: Sequence[Sequence[int]]) -> bytes:
    """Rows with a break between two texts."""
    rows = [row for text in texts for row in (-1, *text)]
    return np.array(rows[1:], np.int32).tobytes()
