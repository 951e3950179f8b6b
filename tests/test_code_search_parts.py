"""The parts of a generation: made from its catalogue alone, and only as far as it changed."""

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
from cleats.toolsets.code.search import segments, vectors, words
from cleats.toolsets.code.search.digest import Texts
from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.search.output import payload
from cleats.toolsets.code.search.parts import shard_count, shard_folders, write_parts
from cleats.toolsets.code.search.request import read
from tests.search_world import File, build, shop


def many(count: int, seed: int = 0) -> list[File]:
    """Files with a function each, of words from a small vocabulary."""
    dice = random.Random(seed)
    files = []
    for number in range(count):
        said = " ".join(dice.choices(["load", "store", "parse", "error", "cart", "item"], k=8))
        body = f"def work_{number}(): {said}"
        file = File(f"pkg{number % 7}/file_{number}.py", body, author=f"Author {number % 3}")
        files.append(file.piece("function", f"work_{number}", body, calls=[f"call{number % 5}"]))
    return files


def answers(engine: Engine, **arguments: Any) -> list[dict[str, Any]]:
    queries = ("load", "parse error", "cart AND item", "-load", '"load store"', "work_11")
    return [
        payload(engine, engine.search(read({"query": query, "top": 20, **arguments})))
        for query in queries
    ]


def inode(folder: Path) -> int:
    return (folder / "content.columns").stat().st_ino


@pytest.mark.parametrize(
    ("files", "shards"),
    [(0, 1), (16, 1), (17, 2), (33, 4), (65, 8), (4096, 8), (4097, 16), (100_000, 256)],
)
def test_the_number_of_files_alone_says_how_many_shards_there_are(files: int, shards: int) -> None:
    assert shard_count(files) == shards


def test_what_has_not_changed_is_taken_over_and_answers_the_same(tmp_path: Path) -> None:
    before = many(200)
    after = many(200)
    after[7] = File("pkg0/file_7.py", "def other(): fresh words").piece(
        "function", "other", "def other(): fresh words"
    )
    first = build(tmp_path / "first", before)

    updated = build(tmp_path / "updated", after, previous=first)
    anew = build(tmp_path / "anew", after)

    shared = [
        inode(one) == inode(two)
        for one, two in zip(shard_folders(first), shard_folders(updated), strict=True)
        if one.name == two.name
    ]
    assert len(shared) == 7
    assert all(shared)
    assert answers(Engine.open(updated)) == answers(Engine.open(anew))
    assert answers(Engine.open(updated)) != answers(Engine.open(first))


def content(folder: Path) -> list[bytes]:
    return [
        (shard / name).read_bytes()
        for shard in shard_folders(folder)
        for name in ("content.columns", "late.columns", "vectors.i8")
    ]


def test_several_processes_make_what_one_makes(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    one = build(tmp_path / "one", many(200))
    several = build(tmp_path / "several", many(200), parts=False)

    write_parts(
        several / "catalogue.db",
        several,
        None,
        lambda _, done=0, total=0: told.append((done, total)),
        workers=3,
    )

    assert content(one) == content(several)
    assert answers(Engine.open(one)) == answers(Engine.open(several))
    assert told == [(done, 8) for done in range(1, 9)]


def test_a_shard_whose_process_dies_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = build(tmp_path / "one", many(200))
    several = build(tmp_path / "several", many(200), parts=False)
    here, write = os.getpid(), segments.write

    def dies_elsewhere(
        folder: Path, number: int, documents: Iterable[tuple[str, int, Texts]]
    ) -> None:
        if os.getpid() != here and "0002-" in folder.name:
            os.abort()
        write(folder, number, documents)

    monkeypatch.setattr(segments, "write", dies_elsewhere)

    write_parts(several / "catalogue.db", several, None, lambda *_: None, workers=2)

    assert content(one) == content(several)
    assert answers(Engine.open(one)) == answers(Engine.open(several))


def test_history_that_changes_without_the_files_is_never_taken_over(tmp_path: Path) -> None:
    before, after = many(20), many(20)
    for file in after:
        file.author = "Somebody Else"
    first = build(tmp_path / "first", before)

    updated = Engine.open(build(tmp_path / "updated", after, previous=first))

    everyone = {"query": "-nowhere", "author": "somebody", "top": 50}
    assert len(updated.search(read(everyone)).hits["code"]) == 20
    assert inode(shard_folders(first)[0]) == inode(shard_folders(updated.folder)[0])


def test_another_way_to_make_facts_makes_every_part_anew(tmp_path: Path) -> None:
    first = build(tmp_path / "first", many(3), {"fingerprint": "one"})
    second = build(tmp_path / "second", many(3), {"fingerprint": "two"}, previous=first)

    assert inode(shard_folders(first)[0]) != inode(shard_folders(second)[0])


def test_shards_together_rank_like_one(tmp_path: Path) -> None:
    """How rare a word is counts over all of them."""
    files = many(300)
    engine = Engine.open(build(tmp_path / "all", files))

    for query in ("load", "parse error", "cart AND item"):
        sets = [
            {hit.path for hit in engine.search(read(given)).hits["code"]}
            for backend in ("tantivy", "memory")
            if (given := {"query": query, "backend": backend, "top": 300, "ann": False})
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
    engine = Engine.open(build(tmp_path / "all", [*many(300), *shop()]))
    monkeypatch.setattr(words, "FEW", engine.chunks)
    named = answers(engine, **arguments)

    monkeypatch.setattr(words, "FEW", 0)
    together = answers(engine, **arguments)
    monkeypatch.setattr(words, "MANY", 0)
    alone = answers(engine, **arguments)

    assert named == together == alone
    assert any(answer["code"] for answer in named)


def test_no_more_is_ever_fetched_than_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tantivy makes room for all that it is asked for."""
    engine = Engine.open(build(tmp_path / "all", [*many(300), *shop()]))
    ranker = engine.backend("tantivy")
    assert isinstance(ranker, words.Words)
    asked: list[int] = []
    search = ranker._search

    def noted(query: Any, limit: int) -> Any:
        asked.append(limit)
        return search(query, limit)

    monkeypatch.setattr(words, "FEW", 0)
    monkeypatch.setattr(words, "MANY", 0)
    monkeypatch.setattr(ranker, "_search", noted)

    answers(engine)

    assert max(asked) == engine.chunks + 1


@pytest.mark.parametrize("arguments", [{}, {"path": "pkg1/"}])
def test_of_many_that_score_the_same_the_first_paths_are_found(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    paths = [f"pkg{number % 2}/file_{number:03}.py" for number in range(400)]
    text = "def same(): word"
    files = [File(path, text).piece("function", "same", text) for path in paths]
    engine = Engine.open(build(tmp_path / "same", files))

    asked = {"query": "word", "top": 5, "ann": False, **arguments}
    found = {
        backend: [
            hit.path for hit in engine.search(read(asked | {"backend": backend})).hits["code"]
        ]
        for backend in ("tantivy", "memory")
    }

    wanted = [path for path in sorted(paths) if path.startswith(arguments.get("path", ""))]
    assert found == {"tantivy": wanted[:5], "memory": wanted[:5]}


def test_one_index_has_a_segment_of_each_shard_and_nothing_else(tmp_path: Path) -> None:
    first = build(tmp_path / "first", many(200))
    after = [*many(200)[1:], File("pkg0/file_0.py", "")]

    updated = build(tmp_path / "updated", after, previous=first)

    def inodes(folder: Path) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for path in (folder / "words").iterdir():
            found.setdefault(path.stem, set()).add(path.stat().st_ino)
        assert found.pop("meta")
        return found

    before, now = inodes(first), inodes(updated)
    kept = before.keys() & now.keys()
    assert (len(before), len(now), len(kept)) == (8, 8, 7)
    assert {each: before[each] for each in kept} == {each: now[each] for each in kept}
    assert {path.name for path in shard_folders(updated)[0].iterdir()} == {
        *("content.columns", "late.columns", "late.mark", "vectors.i8", "words.json"),
    }


@pytest.mark.parametrize("arguments", [{}, {"calls": "call3"}, {"author": "Author 1"}])
def test_the_order_of_files_in_the_catalogue_does_not_matter(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    shuffled = many(150)
    random.Random(3).shuffle(shuffled)

    one = Engine.open(build(tmp_path / "one", many(150)))
    two = Engine.open(build(tmp_path / "two", shuffled))

    assert answers(one, **arguments) == answers(two, **arguments)


def test_rows_that_are_widened_block_by_block_are_as_close_as_those_kept_wide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dice = np.random.default_rng(7)
    sizes = (1, vectors.BLOCK, 2 * vectors.BLOCK + 5)
    shards = [dice.integers(-127, 128, (size, 16), np.int8) for size in sizes]
    direction = dice.random(16, np.float32)
    kept = vectors.Meaning(shards).cosines(direction)

    monkeypatch.setattr(vectors, "KEPT", 0)
    widened = vectors.Meaning(shards).cosines(direction)

    assert len(kept) == sum(sizes)
    assert kept.tobytes() == widened.tobytes()


def test_an_empty_repository_is_searched_in_vain(tmp_path: Path) -> None:
    engine = Engine.open(build(tmp_path / "empty", []))

    for backend in ("tantivy", "sqlite-fts", "memory"):
        for answer in answers(engine, backend=backend, path="x"):
            assert answer["code"] == []


def test_files_without_chunks_are_no_trouble(tmp_path: Path) -> None:
    files = [File("a.py", ""), *many(2), File("z.py", "")]

    engine = Engine.open(build(tmp_path / "some", files))

    assert len(engine.search(read({"query": "-nowhere"})).hits["code"]) == 2


def test_names_that_no_one_expects_are_found_again(tmp_path: Path) -> None:
    paths = ["with\nnewline.py", "spa ce/täst.py", "%FF.py", "a'b\"c.py", "[id].tsx"]
    text = "def same(): word"
    files = [File(path, text).piece("function", "same", text) for path in paths]
    engine = Engine.open(build(tmp_path / "odd", files))

    found = engine.search(read({"query": "word", "top": 50})).hits["code"]
    bracket = engine.search(read({"query": "word", "path": "[id]"})).hits["code"]

    assert sorted(hit.path for hit in found) == sorted(paths)
    assert [hit.path for hit in bracket] == ["[id].tsx"]


def test_one_engine_serves_many_threads(tmp_path: Path) -> None:
    engine = Engine.open(build(tmp_path / "all", many(100) + shop()))
    alone = {
        backend: answers(engine, backend=backend) for backend in ("tantivy", "sqlite-fts", "memory")
    }
    fresh = Engine.open(engine.folder)
    same: list[bool] = []

    def search(backend: str) -> None:
        same.extend(answers(fresh, backend=backend) == alone[backend] for _ in range(3))

    threads = [threading.Thread(target=search, args=(backend,)) for backend in [*alone] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert same == [True] * 18


@pytest.mark.parametrize("part", ["words", "shards"])
def test_an_index_that_lacks_a_part_says_so_and_the_next_one_is_whole(
    tmp_path: Path, part: str
) -> None:
    first = build(tmp_path / "first", many(40))
    shutil.rmtree(first / part)

    with pytest.raises(ToolError, match="missing or damaged") as caught:
        answers(Engine.open(first))
    again = build(tmp_path / "again", many(40), previous=first)

    assert caught.value.code is ErrorCode.NO_INDEX
    assert "--full" in caught.value.hint
    assert answers(Engine.open(again)) == answers(Engine.open(build(tmp_path / "new", many(40))))


@pytest.mark.parametrize("table", [None, '{"format": 0, "shards": []}'])
def test_parts_of_another_version_are_no_index(tmp_path: Path, table: str | None) -> None:
    folder = build(tmp_path / "old", many(1))
    (folder / "shards.json").unlink()
    if table is not None:
        (folder / "shards.json").write_text(table)

    with pytest.raises(ToolError) as caught:
        Engine.open(folder)

    assert caught.value.code is ErrorCode.NO_INDEX
    assert "build_index" in caught.value.hint
