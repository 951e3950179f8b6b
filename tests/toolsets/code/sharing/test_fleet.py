"""One builder and many readers: every machine serves exactly what is published."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cleats.settings import SettingError
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.sharing import shared_index
from cleats.toolsets.code.sharing.manifest import (
    DatabasePointerStore,
    FilePointerStore,
    InvalidGenerationError,
    PointerStore,
    build_manifest,
    parse_manifest,
)
from cleats.toolsets.code.sharing.shared_index import IndexShare
from cleats.toolsets.code.sharing.storage import FolderStorage, Storage, open_storage
from tests.support.indexes import IndexedRepository, read_catalogue_content
from tests.support.object_store import ObservedBucket, run_object_store
from tests.support.postgres import create_database

STORE_CREDENTIALS = {"access_key_id": "key", "secret_access_key": "secret", "region": "eu-central-1"}


class UnpluggedFolder(FolderStorage):
    """A folder that is unplugged while it is in use."""

    def __init__(self, root: Path, good: int) -> None:
        super().__init__(root)
        self.remaining_uses = good

    def _use(self) -> None:
        self.remaining_uses -= 1
        if self.remaining_uses < 0:
            raise OSError("unplugged")

    def has(self, key: str) -> bool:
        self._use()
        return super().has(key)

    def put(self, key: str, source: Path | bytes) -> None:
        self._use()
        super().put(key, source)

    def fetch(self, key: str, target: Path) -> bool:
        self._use()
        return super().fetch(key, target)


@pytest.fixture
def world(tmp_path: Path) -> IndexedRepository:
    repository = IndexedRepository(tmp_path)
    repository.write_file("shop/cart.py", "def total(prices):\n    return sum(prices)\n")
    repository.write_file("README.md", "# Shop\n\nHow to buy things.\n")
    repository.build_index()
    return repository


@contextmanager
def open_folder(tmp_path: Path) -> Iterator[Storage]:
    yield open_storage(str(tmp_path / "shared"), {})


@contextmanager
def open_bucket(tmp_path: Path) -> Iterator[Storage]:
    with run_object_store() as bucket:
        yield make_bucket_storage(bucket)


def make_bucket_storage(bucket: ObservedBucket) -> Storage:
    options = {"endpoint": bucket.base, "client_options": {"allow_http": True}}
    quick = {"max_retries": 0, "backoff": {"base": 1}}
    return open_storage("s3://team/indexes", {**STORE_CREDENTIALS, **options, "retry_config": quick})


def make_file_pointers(remote_storage: Storage) -> PointerStore:
    return FilePointerStore(remote_storage)


def make_database_pointers(_place: Storage) -> PointerStore:
    return DatabasePointerStore(create_database())


every_place = pytest.mark.parametrize("place", [open_folder, open_bucket])
every_pointer = pytest.mark.parametrize("pointers", [make_file_pointers, make_database_pointers])

StorageOpener = Callable[[Path], Any]
PointersFactory = Callable[[Storage], PointerStore]


def make_reader(tmp_path: Path, name: str) -> GenerationStore:
    """Return the store of another machine, without the builder's files or cache."""
    root = tmp_path / name
    root.mkdir(exist_ok=True)
    return GenerationStore(tmp_path / f"{name}-cache", Repository(root))


def read_content(store: GenerationStore) -> dict[str, Any]:
    lease = store.lease_current()
    assert lease is not None
    return read_catalogue_content(lease)


@every_place
@every_pointer
def test_two_readers_get_exactly_what_the_builder_has(
    world: IndexedRepository, tmp_path: Path, place: StorageOpener, pointers: PointersFactory
) -> None:
    with place(tmp_path) as remote_storage:
        share = IndexShare("shop", remote_storage, pointers(remote_storage))
        with world.lease_current() as lease:
            share.publish(lease.folder)
        stores = [make_reader(tmp_path, "left"), make_reader(tmp_path, "right")]

        pulled = [share.pull(store) for store in stores]

        assert pulled == [True, True]
        assert [read_content(store) for store in stores] == [world.read_content()] * 2


@every_place
def test_a_new_generation_reaches_a_reader_and_the_lease_of_the_old_one_still_reads(
    world: IndexedRepository, tmp_path: Path, place: StorageOpener
) -> None:
    with place(tmp_path) as remote_storage:
        share = IndexShare("shop", remote_storage, FilePointerStore(remote_storage))
        with world.lease_current() as lease:
            share.publish(lease.folder)
        store = make_reader(tmp_path, "left")
        share.pull(store)
        old_lease, before = store.lease_current(), read_content(store)
        assert old_lease is not None
        world.write_file("shop/tax.py", "def tax(price):\n    return price / 5\n")
        world.build_index()

        with world.lease_current() as lease:
            share.publish(lease.folder)
        pulls = (share.pull(store), share.pull(store))

        assert pulls == (True, False)
        assert read_content(store) == world.read_content() != before
        assert read_catalogue_content(old_lease) == before


def test_parts_that_did_not_change_travel_once(world: IndexedRepository, tmp_path: Path) -> None:
    with run_object_store() as bucket:
        remote_storage = make_bucket_storage(bucket)
        share = IndexShare("shop", remote_storage, FilePointerStore(remote_storage))
        with world.lease_current() as lease:
            share.publish(lease.folder)
            shutil.copytree(lease.folder, tmp_path / "000099-0123abcd")
        (tmp_path / "000099-0123abcd" / "more").write_text("more")
        sent = len(bucket.list_put_keys())

        share.publish(tmp_path / "000099-0123abcd")

        objects = [key for key in bucket.list_put_keys()[sent:] if "/objects/" in key]
        assert len(objects) == 1


def test_publishing_the_same_generation_again_moves_nothing(world: IndexedRepository, tmp_path: Path) -> None:
    with run_object_store() as bucket, world.lease_current() as lease:
        remote_storage = make_bucket_storage(bucket)
        share = IndexShare("shop", remote_storage, FilePointerStore(remote_storage))
        share.publish(lease.folder)
        sent = bucket.list_put_keys()

        share.publish(lease.folder)

        assert bucket.list_put_keys() == sent


def test_only_the_last_generations_stay_and_their_parts_with_them(world: IndexedRepository, tmp_path: Path) -> None:
    with run_object_store() as bucket:
        remote_storage = make_bucket_storage(bucket)
        share = IndexShare("shop", remote_storage, FilePointerStore(remote_storage))
        for number in range(shared_index.RETAINED_GENERATIONS + 2):
            world.write_file("shop/n.py", f"number = {number}\n")
            world.build_index()
            with world.lease_current() as lease:
                share.publish(lease.folder)

        manifests = {key for key in bucket.objects if "/generations/" in key}
        part_hashes = {part.sha256 for key in manifests for part in parse_manifest(bucket.objects[key]).parts}
        assert len(manifests) == shared_index.RETAINED_GENERATIONS
        assert {key.rsplit("/", 1)[1] for key in bucket.objects if "/objects/" in key} == part_hashes


@pytest.mark.parametrize("good", range(12))
def test_a_builder_that_is_cut_off_leaves_readers_what_they_had(
    world: IndexedRepository, tmp_path: Path, good: int
) -> None:
    root = tmp_path / "shared"
    full_share = IndexShare("shop", FolderStorage(root), FilePointerStore(FolderStorage(root)))
    with world.lease_current() as lease:
        full_share.publish(lease.folder)
    before = world.read_content()
    world.write_file("shop/tax.py", "def tax(price):\n    return price / 5\n")
    world.build_index()
    cut = UnpluggedFolder(root, good)

    with world.lease_current() as lease, suppress(OSError):
        IndexShare("shop", cut, FilePointerStore(cut)).publish(lease.folder)
    store = make_reader(tmp_path, "left")
    full_share.pull(store)

    assert read_content(store) in (before, world.read_content())


@pytest.mark.parametrize("good", range(6))
def test_a_reader_that_is_cut_off_keeps_what_it_has_and_pulls_later(
    world: IndexedRepository, tmp_path: Path, good: int
) -> None:
    root = tmp_path / "shared"
    share = IndexShare("shop", FolderStorage(root), FilePointerStore(FolderStorage(root)))
    with world.lease_current() as lease:
        share.publish(lease.folder)
    store = make_reader(tmp_path, "left")
    share.pull(store)
    before = read_content(store)
    world.write_file("shop/tax.py", "def tax(price):\n    return price / 5\n")
    world.build_index()
    with world.lease_current() as lease:
        share.publish(lease.folder)
    cut = UnpluggedFolder(root, good)

    with suppress(OSError):
        IndexShare("shop", cut, FilePointerStore(FolderStorage(root))).pull(store)

    assert read_content(store) in (before, world.read_content())
    share.pull(store)
    assert read_content(store) == world.read_content()


@pytest.mark.parametrize("what", ["part", "gone", "manifest", "pointer"])
def test_what_was_damaged_is_never_served(world: IndexedRepository, tmp_path: Path, what: str) -> None:
    root = tmp_path / "shared"
    share = IndexShare("shop", FolderStorage(root), FilePointerStore(FolderStorage(root)))
    with world.lease_current() as lease:
        share.publish(lease.folder)
    part = max((root / "objects").rglob("*"), key=lambda path: path.stat().st_size)
    match what:
        case "part":
            data = part.read_bytes()
            part.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        case "gone":
            part.unlink()
        case "manifest":
            [manifest] = (root / "shop" / "generations").iterdir()
            manifest.write_bytes(manifest.read_bytes().replace(b'"size"', b'"sizes"', 1))
        case "pointer":
            (root / "shop" / "current.json").write_text("{")
    store = make_reader(tmp_path, "left")

    with pytest.raises(InvalidGenerationError):
        share.pull(store)

    assert store.lease_current() is None


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../b", "lock", "a\\b", "c:x", "a//b", "./a"])
def test_a_manifest_that_leads_out_of_its_folder_is_refused(world: IndexedRepository, path: str) -> None:
    with world.lease_current() as lease:
        manifest_data = build_manifest("shop", lease.folder)
    lying = msgspec.structs.replace(manifest_data, parts=(msgspec.structs.replace(manifest_data.parts[0], path=path),))

    with pytest.raises(InvalidGenerationError):
        parse_manifest(lying.encode())


def test_a_generation_of_another_format_is_refused_by_name(world: IndexedRepository, tmp_path: Path) -> None:
    folder = FolderStorage(tmp_path / "shared")
    share = IndexShare("shop", folder, FilePointerStore(folder))
    with world.lease_current() as lease:
        foreign_manifest = msgspec.structs.replace(build_manifest("shop", lease.folder), form=-1)
        share.publish(lease.folder)
    [manifest] = (tmp_path / "shared" / "shop" / "generations").iterdir()
    manifest.write_bytes(foreign_manifest.encode())
    pointer = share.pointers.read("shop")
    assert pointer is not None
    lied = msgspec.structs.replace(pointer, manifest=shared_index.hash_manifest(foreign_manifest.encode()))
    share.pointers.move("shop", lied)

    with pytest.raises(InvalidGenerationError, match="another version"):
        share.pull(make_reader(tmp_path, "left"))


def test_a_store_that_refuses_is_an_error_of_the_system_without_its_secrets(
    world: IndexedRepository,
) -> None:
    with run_object_store() as bucket, world.lease_current() as lease:
        bucket.denies_access = True
        remote_storage = make_bucket_storage(bucket)

        with pytest.raises(OSError, match="the object store failed") as caught:
            IndexShare("shop", remote_storage, FilePointerStore(remote_storage)).publish(lease.folder)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["relative/folder", "ftp://host/x", "gs://bucket"])
def test_an_address_that_is_no_place_is_said_at_once(url: str) -> None:
    with pytest.raises(SettingError, match="index_url"):
        open_storage(url, {})


def test_a_database_that_does_not_answer_is_an_error_without_its_address() -> None:
    with pytest.raises(OSError, match="does not answer") as caught:
        DatabasePointerStore("postgresql://u:word@127.0.0.1:9/x").read("shop")

    assert "word" not in str(caught.value)
