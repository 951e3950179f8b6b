"""The parts of a generation: built from its catalogue alone, and only as far as it changed."""

import os
import random
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.index import segments
from cleats.toolsets.code.index.digest import ChunkTexts
from cleats.toolsets.code.index.shard_writer import choose_shard_count, list_shard_folders, write_shards
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.search import meaning, tantivy_backend
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from tests.support.search import ShopFile, build_generation, build_shop_files


def make_files(count: int, seed: int = 0) -> list[ShopFile]:
    """Return files with a function each, of words from a small vocabulary."""
    rng = random.Random(seed)
    files = []
    for number in range(count):
        body_words = " ".join(rng.choices(["load", "store", "parse", "error", "cart", "item"], k=8))
        body = f"def work_{number}(): {body_words}"
        file = ShopFile(f"pkg{number % 7}/file_{number}.py", body, author=f"Author {number % 3}")
        files.append(file.add_chunk("function", f"work_{number}", body, calls=[f"call{number % 5}"]))
    return files


def collect_answers(engine: SearchEngine, **arguments: Any) -> list[dict[str, Any]]:
    queries = ("load", "parse error", "cart AND item", "-load", '"load store"', "work_11")
    return [
        render_answer(engine, search_generation(engine, parse_request({"query": query, "top": 20, **arguments})))
        for query in queries
    ]


def read_inode(folder: Path) -> int:
    return (folder / "content.columns").stat().st_ino


@pytest.mark.parametrize(
    ("files", "shards"),
    [(0, 1), (16, 1), (17, 2), (33, 4), (65, 8), (4096, 8), (4097, 16), (100_000, 256)],
)
def test_the_number_of_files_alone_says_how_many_shards_there_are(files: int, shards: int) -> None:
    assert choose_shard_count(files) == shards


def test_what_has_not_changed_is_taken_over_and_answers_the_same(tmp_path: Path) -> None:
    before = make_files(200)
    after = make_files(200)
    after[7] = ShopFile("pkg0/file_7.py", "def other(): fresh words").add_chunk(
        "function", "other", "def other(): fresh words"
    )
    first = build_generation(tmp_path / "first", before)

    updated = build_generation(tmp_path / "updated", after, previous=first)
    anew = build_generation(tmp_path / "anew", after)

    shared = [
        read_inode(one) == read_inode(two)
        for one, two in zip(list_shard_folders(first), list_shard_folders(updated), strict=True)
        if one.name == two.name
    ]
    assert len(shared) == 7
    assert all(shared)
    assert collect_answers(SearchEngine.open(updated)) == collect_answers(SearchEngine.open(anew))
    assert collect_answers(SearchEngine.open(updated)) != collect_answers(SearchEngine.open(first))


def read_shards(folder: Path) -> list[bytes]:
    return [
        (shard / name).read_bytes()
        for shard in list_shard_folders(folder)
        for name in ("content.columns", "late.columns", "vectors.i8")
    ]


def test_several_processes_make_what_one_makes(tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    one = build_generation(tmp_path / "one", make_files(200))
    several = build_generation(tmp_path / "several", make_files(200), parts=False)

    write_shards(several, None, lambda step: progress.append((step.done, step.total)), workers=3)

    assert read_shards(one) == read_shards(several)
    assert collect_answers(SearchEngine.open(one)) == collect_answers(SearchEngine.open(several))
    assert progress == [(done, 8) for done in range(1, 9)]


def test_a_shard_whose_process_dies_is_made_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = build_generation(tmp_path / "one", make_files(200))
    several = build_generation(tmp_path / "several", make_files(200), parts=False)
    here, write = os.getpid(), segments.write_segment

    def abort_in_worker(folder: Path, number: int, documents: Iterable[tuple[str, int, ChunkTexts]]) -> None:
        if os.getpid() != here and "0002-" in folder.name:
            os.abort()
        write(folder, number, documents)

    monkeypatch.setattr(segments, "write_segment", abort_in_worker)

    write_shards(several, None, lambda *_: None, workers=2)

    assert read_shards(one) == read_shards(several)
    assert collect_answers(SearchEngine.open(one)) == collect_answers(SearchEngine.open(several))


def test_history_that_changes_without_the_files_is_never_taken_over(tmp_path: Path) -> None:
    before, after = make_files(20), make_files(20)
    for file in after:
        file.author = "Somebody Else"
    first = build_generation(tmp_path / "first", before)

    updated = SearchEngine.open(build_generation(tmp_path / "updated", after, previous=first))

    everyone = {"query": "-nowhere", "author": "somebody", "top": 50}
    assert len(search_generation(updated, parse_request(everyone)).hits["code"]) == 20
    assert read_inode(list_shard_folders(first)[0]) == read_inode(list_shard_folders(updated.folder)[0])


def test_another_way_to_make_facts_makes_every_part_anew(tmp_path: Path) -> None:
    first = build_generation(tmp_path / "first", make_files(3), {"fingerprint": "one"})
    second = build_generation(tmp_path / "second", make_files(3), {"fingerprint": "two"}, previous=first)

    assert read_inode(list_shard_folders(first)[0]) != read_inode(list_shard_folders(second)[0])


def test_shards_together_rank_like_one(tmp_path: Path) -> None:
    """Check that the rarity of a word is counted over all shards."""
    files = make_files(300)
    engine = SearchEngine.open(build_generation(tmp_path / "all", files))

    for query in ("load", "parse error", "cart AND item"):
        sets = [
            {hit.path for hit in search_generation(engine, parse_request(request)).hits["code"]}
            for backend in ("tantivy", "memory")
            if (request := {"query": query, "backend": backend, "top": 300, "ann": False})
        ]
        assert sets[0] == sets[1]
        assert len(sets[0]) > 20


@pytest.mark.parametrize(
    "arguments",
    [{}, {"mode": "code"}, {"path": "pkg1/"}, {"calls": "call3"}, {"path": "file_29"}, {"top": 1}],
)
def test_however_few_chunks_are_fetched_at_a_time_the_answer_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    engine = SearchEngine.open(build_generation(tmp_path / "all", [*make_files(300), *build_shop_files()]))
    monkeypatch.setattr(tantivy_backend, "NAMED_CHUNKS_FACTOR", engine.chunk_count)
    by_default = collect_answers(engine, **arguments)

    monkeypatch.setattr(tantivy_backend, "NAMED_CHUNKS_FACTOR", 0)
    in_batches = collect_answers(engine, **arguments)
    monkeypatch.setattr(tantivy_backend, "MAX_SHARED_FETCH_CHUNKS", 0)
    one_by_one = collect_answers(engine, **arguments)

    assert by_default == in_batches == one_by_one
    assert any(answer["code"] for answer in by_default)


def test_no_more_is_ever_fetched_than_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the limits that are passed, because Tantivy allocates room for all of them."""
    engine = SearchEngine.open(build_generation(tmp_path / "all", [*make_files(300), *build_shop_files()]))
    ranker = engine.get_backend("tantivy")
    assert isinstance(ranker, tantivy_backend.TantivyBackend)
    limits: list[int] = []
    search = ranker._search

    def record_limit(query: Any, limit: int) -> Any:
        limits.append(limit)
        return search(query, limit)

    monkeypatch.setattr(tantivy_backend, "NAMED_CHUNKS_FACTOR", 0)
    monkeypatch.setattr(tantivy_backend, "MAX_SHARED_FETCH_CHUNKS", 0)
    monkeypatch.setattr(ranker, "_search", record_limit)

    collect_answers(engine)

    assert max(limits) == engine.chunk_count + 1


@pytest.mark.parametrize("arguments", [{}, {"path": "pkg1/"}])
def test_of_many_that_score_the_same_the_first_paths_are_found(tmp_path: Path, arguments: dict[str, Any]) -> None:
    paths = [f"pkg{number % 2}/file_{number:03}.py" for number in range(400)]
    text = "def same(): word"
    files = [ShopFile(path, text).add_chunk("function", "same", text) for path in paths]
    engine = SearchEngine.open(build_generation(tmp_path / "same", files))

    request = {"query": "word", "top": 5, "ann": False, **arguments}
    paths_by_backend = {
        backend: [
            hit.path for hit in search_generation(engine, parse_request(request | {"backend": backend})).hits["code"]
        ]
        for backend in ("tantivy", "memory")
    }

    expected = [path for path in sorted(paths) if path.startswith(arguments.get("path", ""))]
    assert paths_by_backend == {"tantivy": expected[:5], "memory": expected[:5]}


def test_one_index_has_a_segment_of_each_shard_and_nothing_else(tmp_path: Path) -> None:
    first = build_generation(tmp_path / "first", make_files(200))
    after = [*make_files(200)[1:], ShopFile("pkg0/file_0.py", "")]

    updated = build_generation(tmp_path / "updated", after, previous=first)

    def map_inodes(folder: Path) -> dict[str, set[int]]:
        inodes_by_segment: dict[str, set[int]] = {}
        for path in (folder / "words").iterdir():
            inodes_by_segment.setdefault(path.stem, set()).add(path.stat().st_ino)
        assert inodes_by_segment.pop("meta")
        return inodes_by_segment

    before, now = map_inodes(first), map_inodes(updated)
    common_segments = before.keys() & now.keys()
    assert (len(before), len(now), len(common_segments)) == (8, 8, 7)
    assert {segment: before[segment] for segment in common_segments} == {
        segment: now[segment] for segment in common_segments
    }
    assert {path.name for path in list_shard_folders(updated)[0].iterdir()} == {
        *("content.columns", "late.columns", "late.mark", "vectors.i8", "words.json"),
    }


@pytest.mark.parametrize("arguments", [{}, {"calls": "call3"}, {"author": "Author 1"}])
def test_the_order_of_files_in_the_catalogue_does_not_matter(tmp_path: Path, arguments: dict[str, Any]) -> None:
    shuffled = make_files(150)
    random.Random(3).shuffle(shuffled)

    one = SearchEngine.open(build_generation(tmp_path / "one", make_files(150)))
    two = SearchEngine.open(build_generation(tmp_path / "two", shuffled))

    assert collect_answers(one, **arguments) == collect_answers(two, **arguments)


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_rows_that_are_widened_block_by_block_are_as_close_as_those_kept_wide(
    share: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(7)
    sizes = (1, meaning.BLOCK_ROWS, 2 * meaning.BLOCK_ROWS + 5)
    shards = [rng.integers(-127, 128, (size, 16), np.int8) for size in sizes]
    direction = rng.random(16, np.float32)
    direction /= np.linalg.norm(direction)
    mask = rng.random(sum(sizes)) < share
    wide = meaning.VectorIndex(shards).compare_chunks(direction, mask).values

    monkeypatch.setattr(meaning, "MAX_WIDENED_ROWS", 0)
    compared = meaning.VectorIndex(shards).compare_chunks(direction, mask)
    estimates = compared.values.copy()
    compared.refine(rng.permutation(np.flatnonzero(mask)))

    assert len(wide) == sum(sizes)
    assert np.abs(estimates[mask] - wide[mask]).max() <= meaning.ESTIMATE_TOLERANCE
    assert wide[mask].tobytes() == compared.values[mask].tobytes()


def test_an_empty_repository_is_searched_in_vain(tmp_path: Path) -> None:
    engine = SearchEngine.open(build_generation(tmp_path / "empty", []))

    for backend in ("tantivy", "sqlite-fts", "memory"):
        for answer in collect_answers(engine, backend=backend, path="x"):
            assert answer["code"] == []


def test_files_without_chunks_are_no_trouble(tmp_path: Path) -> None:
    files = [ShopFile("a.py", ""), *make_files(2), ShopFile("z.py", "")]

    engine = SearchEngine.open(build_generation(tmp_path / "some", files))

    assert len(search_generation(engine, parse_request({"query": "-nowhere"})).hits["code"]) == 2


def test_names_that_no_one_expects_are_found_again(tmp_path: Path) -> None:
    paths = ["with\nnewline.py", "spa ce/täst.py", "%FF.py", "a'b\"c.py", "[id].tsx"]
    text = "def same(): word"
    files = [ShopFile(path, text).add_chunk("function", "same", text) for path in paths]
    engine = SearchEngine.open(build_generation(tmp_path / "odd", files))

    hits = search_generation(engine, parse_request({"query": "word", "top": 50})).hits["code"]
    bracket = search_generation(engine, parse_request({"query": "word", "path": "[id]"})).hits["code"]

    assert sorted(hit.path for hit in hits) == sorted(paths)
    assert [hit.path for hit in bracket] == ["[id].tsx"]


def test_one_engine_serves_many_threads(tmp_path: Path) -> None:
    engine = SearchEngine.open(build_generation(tmp_path / "all", make_files(100) + build_shop_files()))
    expected_answers = {
        backend: collect_answers(engine, backend=backend) for backend in ("tantivy", "sqlite-fts", "memory")
    }
    fresh = SearchEngine.open(engine.folder)
    same: list[bool] = []

    def search(backend: str) -> None:
        same.extend(collect_answers(fresh, backend=backend) == expected_answers[backend] for _ in range(3))

    threads = [threading.Thread(target=search, args=(backend,)) for backend in [*expected_answers] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert same == [True] * 18


@pytest.mark.parametrize("part", ["words", "shards"])
def test_an_index_that_lacks_a_part_says_so_and_the_next_one_is_whole(tmp_path: Path, part: str) -> None:
    first = build_generation(tmp_path / "first", make_files(40))
    shutil.rmtree(first / part)

    with pytest.raises(ToolError, match="missing or damaged") as caught:
        collect_answers(SearchEngine.open(first))
    rebuilt = build_generation(tmp_path / "again", make_files(40), previous=first)

    assert caught.value.code is ErrorCode.NO_INDEX
    assert "--full" in caught.value.hint
    assert collect_answers(SearchEngine.open(rebuilt)) == collect_answers(
        SearchEngine.open(build_generation(tmp_path / "new", make_files(40)))
    )


@pytest.mark.parametrize("table", [None, '{"format": 0, "shards": []}'])
def test_parts_of_another_version_are_no_index(tmp_path: Path, table: str | None) -> None:
    folder = build_generation(tmp_path / "old", make_files(1))
    (folder / "shards.json").unlink()
    if table is not None:
        (folder / "shards.json").write_text(table)

    with pytest.raises(ToolError) as caught:
        SearchEngine.open(folder)

    assert caught.value.code is ErrorCode.NO_INDEX
    assert "build_index" in caught.value.hint
