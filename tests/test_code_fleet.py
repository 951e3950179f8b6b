"""One builder and many readers: what is published is what every machine serves."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cleats.settings import SettingError
from cleats.toolsets.code.fleet import sharing
from cleats.toolsets.code.fleet.manifest import UnsoundError, decoded, described
from cleats.toolsets.code.fleet.pointers import Beside, Database, Pointers
from cleats.toolsets.code.fleet.sharing import Share
from cleats.toolsets.code.fleet.storage import Folder, Storage, storage
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store.generations import Shelf
from tests.index_world import World, content
from tests.object_store import Bucket, object_store
from tests.postgres import database

ACCESS = {"access_key_id": "key", "secret_access_key": "secret", "region": "eu-central-1"}


class Broken(Folder):
    """A folder that is unplugged while it is used."""

    def __init__(self, root: Path, good: int) -> None:
        super().__init__(root)
        self.good = good

    def _use(self) -> None:
        self.good -= 1
        if self.good < 0:
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
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.write("shop/cart.py", "def total(prices):\n    return sum(prices)\n")
    made.write("README.md", "# Shop\n\nHow to buy things.\n")
    made.build()
    return made


@contextmanager
def a_folder(tmp_path: Path) -> Iterator[Storage]:
    yield storage(str(tmp_path / "shared"), {})


@contextmanager
def a_bucket(tmp_path: Path) -> Iterator[Storage]:
    with object_store() as bucket:
        yield over(bucket)


def over(bucket: Bucket) -> Storage:
    options = {"endpoint": bucket.base, "client_options": {"allow_http": True}}
    quick = {"max_retries": 0, "backoff": {"base": 1}}
    return storage("s3://team/indexes", {**ACCESS, **options, "retry_config": quick})


def beside(place: Storage) -> Pointers:
    return Beside(place)


def in_a_database(_place: Storage) -> Pointers:
    return Database(database())


every_place = pytest.mark.parametrize("place", [a_folder, a_bucket])
every_pointer = pytest.mark.parametrize("pointers", [beside, in_a_database])

Place = Callable[[Path], Any]
Points = Callable[[Storage], Pointers]


def reader(tmp_path: Path, name: str) -> Shelf:
    """Another machine: it has neither the files nor the cache of the builder."""
    root = tmp_path / name
    root.mkdir(exist_ok=True)
    return Shelf(tmp_path / f"{name}-cache", Repository(root))


def told(shelf: Shelf) -> dict[str, Any]:
    lease = shelf.current()
    assert lease is not None
    return content(lease)


@every_place
@every_pointer
def test_two_readers_get_exactly_what_the_builder_has(
    world: World, tmp_path: Path, place: Place, pointers: Points
) -> None:
    with place(tmp_path) as kept:
        share = Share("shop", kept, pointers(kept))
        with world.lease() as lease:
            share.publish(lease.folder)
        shelves = [reader(tmp_path, "left"), reader(tmp_path, "right")]

        pulled = [share.pull(shelf) for shelf in shelves]

        assert pulled == [True, True]
        assert [told(shelf) for shelf in shelves] == [world.content()] * 2


@every_place
def test_a_new_generation_reaches_a_reader_and_the_lease_of_the_old_one_still_reads(
    world: World, tmp_path: Path, place: Place
) -> None:
    with place(tmp_path) as kept:
        share = Share("shop", kept, Beside(kept))
        with world.lease() as lease:
            share.publish(lease.folder)
        shelf = reader(tmp_path, "left")
        share.pull(shelf)
        held, before = shelf.current(), told(shelf)
        assert held is not None
        world.write("shop/tax.py", "def tax(price):\n    return price / 5\n")
        world.build()

        with world.lease() as lease:
            share.publish(lease.folder)
        again = (share.pull(shelf), share.pull(shelf))

        assert again == (True, False)
        assert told(shelf) == world.content() != before
        assert content(held) == before


def test_parts_that_did_not_change_travel_once(world: World, tmp_path: Path) -> None:
    with object_store() as bucket:
        kept = over(bucket)
        share = Share("shop", kept, Beside(kept))
        with world.lease() as lease:
            share.publish(lease.folder)
            shutil.copytree(lease.folder, tmp_path / "000099-0123abcd")
        (tmp_path / "000099-0123abcd" / "more").write_text("more")
        sent = len(bucket.puts())

        share.publish(tmp_path / "000099-0123abcd")

        objects = [key for key in bucket.puts()[sent:] if "/objects/" in key]
        assert len(objects) == 1


def test_publishing_the_same_generation_again_moves_nothing(world: World, tmp_path: Path) -> None:
    with object_store() as bucket, world.lease() as lease:
        kept = over(bucket)
        share = Share("shop", kept, Beside(kept))
        share.publish(lease.folder)
        sent = bucket.puts()

        share.publish(lease.folder)

        assert bucket.puts() == sent


def test_only_the_last_generations_stay_and_their_parts_with_them(
    world: World, tmp_path: Path
) -> None:
    with object_store() as bucket:
        kept = over(bucket)
        share = Share("shop", kept, Beside(kept))
        for number in range(sharing.KEPT + 2):
            world.write("shop/n.py", f"number = {number}\n")
            world.build()
            with world.lease() as lease:
                share.publish(lease.folder)

        manifests = {key for key in bucket.objects if "/generations/" in key}
        named = {part.sha256 for key in manifests for part in decoded(bucket.objects[key]).parts}
        assert len(manifests) == sharing.KEPT
        assert {key.rsplit("/", 1)[1] for key in bucket.objects if "/objects/" in key} == named


@pytest.mark.parametrize("good", range(12))
def test_a_builder_that_is_cut_off_leaves_readers_what_they_had(
    world: World, tmp_path: Path, good: int
) -> None:
    root = tmp_path / "shared"
    whole = Share("shop", Folder(root), Beside(Folder(root)))
    with world.lease() as lease:
        whole.publish(lease.folder)
    before = world.content()
    world.write("shop/tax.py", "def tax(price):\n    return price / 5\n")
    world.build()
    cut = Broken(root, good)

    with world.lease() as lease, suppress(OSError):
        Share("shop", cut, Beside(cut)).publish(lease.folder)
    shelf = reader(tmp_path, "left")
    whole.pull(shelf)

    assert told(shelf) in (before, world.content())


@pytest.mark.parametrize("good", range(6))
def test_a_reader_that_is_cut_off_keeps_what_it_has_and_pulls_later(
    world: World, tmp_path: Path, good: int
) -> None:
    root = tmp_path / "shared"
    share = Share("shop", Folder(root), Beside(Folder(root)))
    with world.lease() as lease:
        share.publish(lease.folder)
    shelf = reader(tmp_path, "left")
    share.pull(shelf)
    before = told(shelf)
    world.write("shop/tax.py", "def tax(price):\n    return price / 5\n")
    world.build()
    with world.lease() as lease:
        share.publish(lease.folder)
    cut = Broken(root, good)

    with suppress(OSError):
        Share("shop", cut, Beside(Folder(root))).pull(shelf)

    assert told(shelf) in (before, world.content())
    share.pull(shelf)
    assert told(shelf) == world.content()


@pytest.mark.parametrize("what", ["part", "gone", "manifest", "pointer"])
def test_what_was_damaged_is_never_served(world: World, tmp_path: Path, what: str) -> None:
    root = tmp_path / "shared"
    share = Share("shop", Folder(root), Beside(Folder(root)))
    with world.lease() as lease:
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
    shelf = reader(tmp_path, "left")

    with pytest.raises(UnsoundError):
        share.pull(shelf)

    assert shelf.current() is None


@pytest.mark.parametrize(
    "path", ["../out", "/etc/passwd", "a/../../b", "lock", "a\\b", "c:x", "a//b", "./a"]
)
def test_a_manifest_that_leads_out_of_its_folder_is_refused(world: World, path: str) -> None:
    with world.lease() as lease:
        made = described("shop", lease.folder)
    lying = msgspec.structs.replace(
        made, parts=(msgspec.structs.replace(made.parts[0], path=path),)
    )

    with pytest.raises(UnsoundError):
        decoded(lying.encode())


def test_a_generation_of_another_format_is_refused_by_name(world: World, tmp_path: Path) -> None:
    place = Folder(tmp_path / "shared")
    share = Share("shop", place, Beside(place))
    with world.lease() as lease:
        made = msgspec.structs.replace(described("shop", lease.folder), form=-1)
        share.publish(lease.folder)
    [manifest] = (tmp_path / "shared" / "shop" / "generations").iterdir()
    manifest.write_bytes(made.encode())
    pointer = share.pointers.current("shop")
    assert pointer is not None
    lied = msgspec.structs.replace(pointer, manifest=sharing.hashed(made.encode()))
    share.pointers.move("shop", lied)

    with pytest.raises(UnsoundError, match="another version"):
        share.pull(reader(tmp_path, "left"))


def test_a_store_that_refuses_is_an_error_of_the_system_without_its_secrets(
    world: World,
) -> None:
    with object_store() as bucket, world.lease() as lease:
        bucket.broken = True
        kept = over(bucket)

        with pytest.raises(OSError, match="the object store failed") as caught:
            Share("shop", kept, Beside(kept)).publish(lease.folder)

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["relative/folder", "ftp://host/x", "gs://bucket"])
def test_an_address_that_is_no_place_is_said_at_once(url: str) -> None:
    with pytest.raises(SettingError, match="index_url"):
        storage(url, {})


def test_a_database_that_does_not_answer_is_an_error_without_its_address() -> None:
    with pytest.raises(OSError, match="does not answer") as caught:
        Database("postgresql://u:word@127.0.0.1:9/x").current("shop")

    assert "word" not in str(caught.value)
