"""Where an index is kept: it is whole or not there, and nobody waits for anybody."""

import os
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.catalogue import Catalogue, Known
from cleats.toolsets.code.store.generations import BUILDING, Lease, Shelf
from cleats.toolsets.code.store.locks import Lock
from cleats.toolsets.code.store.rows import ChunkRow, FileRow


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    root = tmp_path / "project"
    root.mkdir()
    shelf = Shelf(tmp_path / "cache", Repository(root))
    claimed(shelf).release()
    return shelf


def claimed(shelf: Shelf) -> Lock:
    lock = shelf.claim()
    assert lock is not None
    return lock


def leased(shelf: Shelf) -> Lease:
    lease = shelf.current()
    assert lease is not None
    return lease


def published(shelf: Shelf, mark: str = "") -> str:
    with shelf.draft() as draft:
        with Catalogue.create(draft / schema.FILE) as catalogue:
            catalogue.set_meta({"mark": mark})
            catalogue.commit()
        return shelf.publish(draft)


def mark_of(lease: Lease) -> str:
    with Catalogue.open(lease.catalogue) as catalogue:
        return str(catalogue.meta()["mark"])


def generations(shelf: Shelf) -> set[str]:
    return {path.name for path in (shelf.folder / "generations").iterdir()}


def row(path: str, *names: str) -> FileRow:
    chunks = [
        ChunkRow("code", "function", name, at, at + 1, at + 1, at + 1, name, b"", None)
        for at, name in enumerate(names)
    ]
    return FileRow(path, 1, 2, b"h", "python", "code", 1, "", b"", b"", b"", b"", chunks)


# Repositories


def test_a_folder_inside_a_repository_means_the_whole(tmp_path: Path) -> None:
    (tmp_path / "app" / ".git").mkdir(parents=True)
    (tmp_path / "app" / "src" / "deep").mkdir(parents=True)

    found = Repository.at("app/src/deep", tmp_path)

    assert found.root == (tmp_path / "app").resolve()


def test_a_worktree_whose_git_is_a_file_is_a_repository(tmp_path: Path) -> None:
    (tmp_path / "tree" / "src").mkdir(parents=True)
    (tmp_path / "tree" / ".git").write_text("gitdir: elsewhere\n")

    assert Repository.at(str(tmp_path / "tree" / "src"), tmp_path).root == tmp_path / "tree"


def test_without_git_the_nearest_configuration_marks_the_root(tmp_path: Path) -> None:
    (tmp_path / "app" / "src").mkdir(parents=True)
    (tmp_path / "app" / ".cleats.toml").touch()

    assert Repository.at("app/src", tmp_path).root == tmp_path / "app"


def test_without_any_mark_the_folder_itself_is_meant(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()

    assert Repository.at(None, tmp_path / "plain").root == tmp_path / "plain"


@pytest.mark.parametrize(
    ("indexed", "meant"),
    [({"app"}, "app"), ({"app/src"}, "app/src"), ({"app", "app/src"}, "app"), (set(), "app")],
)
def test_a_part_is_meant_itself_only_when_only_it_has_an_index(
    tmp_path: Path, indexed: set[str], meant: str
) -> None:
    (tmp_path / "app" / ".git").mkdir(parents=True)
    (tmp_path / "app" / "src").mkdir()
    roots = {tmp_path / each for each in indexed}

    found = Repository.at("app/src", tmp_path, lambda each: each.root in roots)

    assert found.root == tmp_path / meant


@pytest.mark.parametrize("path", ["nowhere", "file", "bad\0name", "~nobody-here/x"])
def test_a_path_that_is_no_folder_is_refused_with_a_hint(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ToolError) as refused:
        Repository.at(path, tmp_path)

    assert refused.value.code is ErrorCode.INVALID_REQUEST
    expected = "file is a file." if path == "file" else f"Repo path not found: {path}"
    assert refused.value.message == expected
    assert refused.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root enters every folder")
def test_a_folder_that_may_not_be_entered_is_refused_with_a_hint(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)

    with pytest.raises(ToolError) as refused:
        Repository.at("closed", tmp_path)

    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert refused.value.message == f"{closed} may not be entered."
    assert refused.value.hint


def test_a_repository_has_one_id_however_it_is_reached(tmp_path: Path) -> None:
    (tmp_path / "My App!").mkdir()
    (tmp_path / "link").symlink_to("My App!")

    direct, linked = Repository.at("My App!", tmp_path), Repository.at("link", tmp_path)

    assert direct.id == linked.id
    assert direct.id.startswith("my-app-")
    assert len(direct.id) == len("my-app-") + 12


# Generations


def test_without_a_build_there_is_no_generation(shelf: Shelf) -> None:
    assert shelf.name() is None
    assert shelf.current() is None
    assert not shelf.outdated()


def test_readers_get_what_was_published_last(shelf: Shelf) -> None:
    published(shelf, "first")
    name = published(shelf, "second")

    with leased(shelf) as lease:
        assert lease.name == name == shelf.name()
        assert mark_of(lease) == "second"


def test_a_draft_that_is_not_published_leaves_nothing(shelf: Shelf) -> None:
    published(shelf, "good")

    with shelf.draft() as draft:
        (draft / "half").write_text("done")

    assert generations(shelf) == {shelf.name()}


def test_a_generation_stays_as_long_as_somebody_reads_it(shelf: Shelf) -> None:
    old = published(shelf, "old")
    lease = leased(shelf)
    new = published(shelf, "new")

    shelf.collect()
    assert generations(shelf) == {old, new}
    assert mark_of(lease) == "old"

    lease.close()
    shelf.collect()
    assert generations(shelf) == {new}


def test_what_a_dead_builder_left_is_removed_by_the_next(shelf: Shelf) -> None:
    name = published(shelf)
    folder = shelf.folder / "generations"
    (folder / f"{BUILDING}4711-aa").mkdir()
    (folder / f"{BUILDING}4711-aa" / schema.FILE).write_text("half")
    (folder / name).rename(folder / "000009-01234567")
    published(shelf)

    shelf.collect()

    assert generations(shelf) == {shelf.name()}


def test_there_is_one_builder_at_a_time(shelf: Shelf) -> None:
    first = claimed(shelf)

    assert shelf.claim() is None

    first.release()
    second = claimed(shelf)
    second.release()


def test_a_reader_does_not_wait_for_a_builder(shelf: Shelf) -> None:
    published(shelf, "good")
    lock = claimed(shelf)

    with shelf.draft(), leased(shelf) as lease:
        assert mark_of(lease) == "good"

    lock.release()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"../../etc\n", b"\xff\xfe", b"000001-00"])
def test_a_pointer_that_says_nothing_useful_means_no_index(shelf: Shelf, content: bytes) -> None:
    published(shelf)
    (shelf.folder / "current").write_bytes(content)

    assert shelf.current() is None


def test_a_pointer_to_a_generation_that_is_gone_means_no_index(shelf: Shelf) -> None:
    published(shelf)
    (shelf.folder / "current").write_text("000007-01234567\n")

    assert shelf.current() is None


def test_an_index_of_another_form_is_not_read_but_known_to_be_there(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(shelf)
    monkeypatch.setattr(schema, "SCHEMA", schema.SCHEMA + 1)

    assert shelf.current() is None
    assert shelf.outdated()


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\0" * 20, b"x" * 200])
def test_a_damaged_catalogue_has_no_form(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "db").write_bytes(content)

    assert schema.form(tmp_path / "db") is None
    assert schema.form(tmp_path / "none") is None


# The catalogue


def test_a_file_goes_with_its_chunks(tmp_path: Path) -> None:
    with Catalogue.create(tmp_path / "c.db") as catalogue:
        catalogue.put(row("a.py", "f", "g"))
        catalogue.put(row("b.py", "h"))
        catalogue.remove(["a.py", "never.py"])

        assert set(catalogue.known()) == {"b.py"}
        assert list(catalogue.connection.execute("SELECT name, ordinal FROM chunks")) == [("h", 0)]


def test_files_that_are_not_indexed_are_known_too(tmp_path: Path) -> None:
    with Catalogue.create(tmp_path / "c.db") as catalogue:
        catalogue.skip("a.bin", Known(3, 4, b"x"), "binary", "")
        catalogue.touch("a.bin", 5, 6)

        assert catalogue.known() == {"a.bin": Known(5, 6, b"x")}
        assert catalogue.counts().skipped == {"binary": 1}
        assert catalogue.left_out() == [("a.bin", "binary", "")]

        catalogue.remove(["a.bin"])
        assert catalogue.known() == {}


def test_what_is_not_committed_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with Catalogue.create(path) as catalogue:
        catalogue.put(row("a.py"))
        catalogue.commit()
        catalogue.put(row("b.py"))

    with Catalogue.open(path) as reader:
        assert set(reader.known()) == {"a.py"}


def test_a_catalogue_in_a_folder_with_an_odd_name_can_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "100% ?#odd"
    folder.mkdir()
    with Catalogue.create(folder / "c.db") as catalogue:
        catalogue.put(row("a.py", "f"))
        catalogue.commit()

    with Catalogue.open(folder / "c.db") as reader:
        assert reader.counts().chunks == {"code": 1}
