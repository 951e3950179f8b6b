"""The storage of an index: it is complete or absent, and nobody waits for anybody."""

import os
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.atomic_files import FileLock
from cleats.toolsets.code.index import catalogue_schema
from cleats.toolsets.code.index.catalogue import IndexCatalogue, KnownFile
from cleats.toolsets.code.index.catalogue_schema import ChunkRow, FileRow
from cleats.toolsets.code.index.generations import BUILDING_PREFIX, GenerationLease, GenerationStore
from cleats.toolsets.code.repository import Repository


@pytest.fixture
def store(tmp_path: Path) -> GenerationStore:
    root = tmp_path / "project"
    root.mkdir()
    generation_store = GenerationStore(tmp_path / "cache", Repository(root))
    claim_store(generation_store).release()
    return generation_store


def claim_store(generation_store: GenerationStore) -> FileLock:
    lock = generation_store.try_build_lock()
    assert lock is not None
    return lock


def lease_current(generation_store: GenerationStore) -> GenerationLease:
    lease = generation_store.lease_current()
    assert lease is not None
    return lease


def publish_generation(generation_store: GenerationStore, mark: str = "") -> str:
    with generation_store.create_draft() as draft:
        with IndexCatalogue.create(draft / catalogue_schema.CATALOGUE_FILE_NAME) as catalogue:
            catalogue.set_meta({"mark": mark})
            catalogue.commit()
        return generation_store.publish(draft)


def read_mark(lease: GenerationLease) -> str:
    with IndexCatalogue.open(lease.catalogue_path) as catalogue:
        return str(catalogue.read_meta()["mark"])


def list_generations(generation_store: GenerationStore) -> set[str]:
    return {path.name for path in (generation_store.folder / "generations").iterdir()}


def make_row(path: str, *names: str) -> FileRow:
    chunks = [
        ChunkRow("code", "function", name, at, at + 1, at + 1, at + 1, name, b"", None) for at, name in enumerate(names)
    ]
    return FileRow(path, 1, 2, b"h", "python", "code", 1, "", b"", b"", b"", b"", chunks)


# Repositories


def test_a_folder_inside_a_repository_means_the_whole(tmp_path: Path) -> None:
    (tmp_path / "app" / ".git").mkdir(parents=True)
    (tmp_path / "app" / "src" / "deep").mkdir(parents=True)

    repository = Repository.from_path("app/src/deep", tmp_path)

    assert repository.root == (tmp_path / "app").resolve()


def test_a_worktree_whose_git_is_a_file_is_a_repository(tmp_path: Path) -> None:
    (tmp_path / "tree" / "src").mkdir(parents=True)
    (tmp_path / "tree" / ".git").write_text("gitdir: elsewhere\n")

    assert Repository.from_path(str(tmp_path / "tree" / "src"), tmp_path).root == tmp_path / "tree"


def test_without_git_the_nearest_configuration_marks_the_root(tmp_path: Path) -> None:
    (tmp_path / "app" / "src").mkdir(parents=True)
    (tmp_path / "app" / ".cleats.toml").touch()

    assert Repository.from_path("app/src", tmp_path).root == tmp_path / "app"


def test_without_any_mark_the_folder_itself_is_meant(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()

    assert Repository.from_path(None, tmp_path / "plain").root == tmp_path / "plain"


@pytest.mark.parametrize(
    ("indexed", "expected"),
    [({"app"}, "app"), ({"app/src"}, "app/src"), ({"app", "app/src"}, "app"), (set(), "app")],
)
def test_a_part_is_meant_itself_only_when_only_it_has_an_index(
    tmp_path: Path, indexed: set[str], expected: str
) -> None:
    (tmp_path / "app" / ".git").mkdir(parents=True)
    (tmp_path / "app" / "src").mkdir()
    roots = {tmp_path / candidate for candidate in indexed}

    repository = Repository.from_path("app/src", tmp_path, lambda candidate: candidate.root in roots)

    assert repository.root == tmp_path / expected


@pytest.mark.parametrize("path", ["nowhere", "file", "bad\0name", "~nobody-here/x"])
def test_a_path_that_is_no_folder_is_refused_with_a_hint(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ToolError) as refused:
        Repository.from_path(path, tmp_path)

    assert refused.value.code is ErrorCode.INVALID_REQUEST
    expected = "file is a file." if path == "file" else f"Repo path not found: {path}"
    assert refused.value.message == expected
    assert refused.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root enters every folder")
def test_a_folder_that_may_not_be_entered_is_refused_with_a_hint(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)

    with pytest.raises(ToolError) as refused:
        Repository.from_path("closed", tmp_path)

    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert refused.value.message == f"{closed} cannot be opened: permission denied."
    assert refused.value.hint


def test_a_repository_has_one_id_however_it_is_reached(tmp_path: Path) -> None:
    (tmp_path / "My App!").mkdir()
    (tmp_path / "link").symlink_to("My App!")

    direct, linked = Repository.from_path("My App!", tmp_path), Repository.from_path("link", tmp_path)

    assert direct.id == linked.id
    assert direct.id.startswith("my-app-")
    assert len(direct.id) == len("my-app-") + 12


# Generations


def test_without_a_build_there_is_no_generation(store: GenerationStore) -> None:
    assert store.read_current_name() is None
    assert store.lease_current() is None
    assert not store.is_outdated()


def test_readers_get_what_was_published_last(store: GenerationStore) -> None:
    publish_generation(store, "first")
    name = publish_generation(store, "second")

    with lease_current(store) as lease:
        assert lease.name == name == store.read_current_name()
        assert read_mark(lease) == "second"


def test_a_draft_that_is_not_published_leaves_nothing(store: GenerationStore) -> None:
    publish_generation(store, "good")

    with store.create_draft() as draft:
        (draft / "half").write_text("done")

    assert list_generations(store) == {store.read_current_name()}


def test_a_generation_stays_as_long_as_somebody_reads_it(store: GenerationStore) -> None:
    old = publish_generation(store, "old")
    lease = lease_current(store)
    new = publish_generation(store, "new")

    store.remove_unused()
    assert list_generations(store) == {old, new}
    assert read_mark(lease) == "old"

    lease.close()
    store.remove_unused()
    assert list_generations(store) == {new}


def test_what_a_dead_builder_left_is_removed_by_the_next(store: GenerationStore) -> None:
    name = publish_generation(store)
    folder = store.folder / "generations"
    (folder / f"{BUILDING_PREFIX}4711-aa").mkdir()
    (folder / f"{BUILDING_PREFIX}4711-aa" / catalogue_schema.CATALOGUE_FILE_NAME).write_text("half")
    (folder / name).rename(folder / "000009-01234567")
    publish_generation(store)

    store.remove_unused()

    assert list_generations(store) == {store.read_current_name()}


def test_there_is_one_builder_at_a_time(store: GenerationStore) -> None:
    first = claim_store(store)

    assert store.try_build_lock() is None

    first.release()
    second = claim_store(store)
    second.release()


def test_a_reader_does_not_wait_for_a_builder(store: GenerationStore) -> None:
    publish_generation(store, "good")
    lock = claim_store(store)

    with store.create_draft(), lease_current(store) as lease:
        assert read_mark(lease) == "good"

    lock.release()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"../../etc\n", b"\xff\xfe", b"000001-00"])
def test_a_pointer_that_says_nothing_useful_means_no_index(store: GenerationStore, content: bytes) -> None:
    publish_generation(store)
    (store.folder / "current").write_bytes(content)

    assert store.lease_current() is None


def test_a_pointer_to_a_generation_that_is_gone_means_no_index(store: GenerationStore) -> None:
    publish_generation(store)
    (store.folder / "current").write_text("000007-01234567\n")

    assert store.lease_current() is None


def test_an_index_of_another_form_is_not_read_but_known_to_be_there(
    store: GenerationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_generation(store)
    monkeypatch.setattr(catalogue_schema, "CATALOGUE_SCHEMA_VERSION", catalogue_schema.CATALOGUE_SCHEMA_VERSION + 1)

    assert store.lease_current() is None
    assert store.is_outdated()


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\0" * 20, b"x" * 200])
def test_a_damaged_catalogue_has_no_form(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "db").write_bytes(content)

    assert catalogue_schema.read_schema_version(tmp_path / "db") is None
    assert catalogue_schema.read_schema_version(tmp_path / "none") is None


# The catalogue


def test_a_file_goes_with_its_chunks(tmp_path: Path) -> None:
    with IndexCatalogue.create(tmp_path / "c.db") as catalogue:
        catalogue.add_file(make_row("a.py", "f", "g"))
        catalogue.add_file(make_row("b.py", "h"))
        catalogue.remove_files(["a.py", "never.py"])

        assert set(catalogue.read_known_files()) == {"b.py"}
        assert list(catalogue.connection.execute("SELECT name, ordinal FROM chunks")) == [("h", 0)]


def test_files_that_are_not_indexed_are_known_too(tmp_path: Path) -> None:
    with IndexCatalogue.create(tmp_path / "c.db") as catalogue:
        catalogue.add_skipped_file("a.bin", KnownFile(3, 4, b"x"), "binary", "")
        catalogue.update_mtime("a.bin", 5, 6)

        assert catalogue.read_known_files() == {"a.bin": KnownFile(5, 6, b"x")}
        assert catalogue.count_contents().skipped == {"binary": 1}
        assert catalogue.list_skipped_files() == [("a.bin", "binary", "")]

        catalogue.remove_files(["a.bin"])
        assert catalogue.read_known_files() == {}


def test_what_is_not_committed_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with IndexCatalogue.create(path) as catalogue:
        catalogue.add_file(make_row("a.py"))
        catalogue.commit()
        catalogue.add_file(make_row("b.py"))

    with IndexCatalogue.open(path) as reader:
        assert set(reader.read_known_files()) == {"a.py"}


def test_a_catalogue_in_a_folder_with_an_odd_name_can_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "100% ?#odd"
    folder.mkdir()
    with IndexCatalogue.create(folder / "c.db") as catalogue:
        catalogue.add_file(make_row("a.py", "f"))
        catalogue.commit()

    with IndexCatalogue.open(folder / "c.db") as reader:
        assert reader.count_contents().chunks == {"code": 1}
