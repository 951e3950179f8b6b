"""Shared indexes in a real S3 server: large objects, lost connections, wrong clocks and credentials."""

import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.sharing.manifest import FilePointerStore
from cleats.toolsets.code.sharing.shared_index import IndexShare
from cleats.toolsets.code.sharing.storage import MAX_CONCURRENT_PARTS, Storage
from tests.engines.s3_server import RelayedBucket, S3Server, StoreRequest, relay_bucket, run_s3_server
from tests.support.indexes import IndexedRepository, read_catalogue_content
from tests.support.object_store import PROGRAM_VARIABLE
from tests.toolsets.code.sharing.test_fleet import make_bucket_storage

LARGE_OBJECT_BYTES = 23 << 20
"""More than four of the parts of 5 MiB that a large object is sent in."""

HOLD_SECONDS = 0.3
"""The time that a part is held back, so that others that are sent meanwhile are seen."""


@pytest.fixture
def server() -> Iterator[S3Server]:
    if PROGRAM_VARIABLE not in os.environ:
        pytest.skip("run make engines, which builds an S3 server")
    with run_s3_server(Path(os.environ[PROGRAM_VARIABLE])) as running:
        yield running


@pytest.fixture
def bucket(server: S3Server) -> Iterator[RelayedBucket]:
    with relay_bucket(server) as relayed:
        yield relayed


@pytest.fixture
def storage(bucket: RelayedBucket) -> Storage:
    return make_bucket_storage(bucket)


@pytest.fixture
def large_file(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(Random(1).randbytes(LARGE_OBJECT_BYTES))
    return path


@pytest.fixture
def world(tmp_path: Path) -> IndexedRepository:
    repository = IndexedRepository(tmp_path)
    repository.write_file("shop/cart.py", "def total(prices):\n    return sum(prices)\n")
    repository.build_index()
    return repository


def test_a_large_object_travels_in_parts_and_arrives_whole(
    storage: Storage, bucket: RelayedBucket, large_file: Path, tmp_path: Path
) -> None:
    storage.put("large", large_file)
    assert storage.fetch("large", tmp_path / "copy")

    assert (tmp_path / "copy").read_bytes() == large_file.read_bytes()
    assert sum("partNumber=" in target for target in bucket.targets) >= 4


def test_few_parts_are_sent_at_once_so_that_each_arrives_in_time_on_a_slow_link(
    storage: Storage, bucket: RelayedBucket, large_file: Path
) -> None:
    active, peak, lock, never = 0, 0, threading.Lock(), threading.Event()

    def hold_part(request: StoreRequest) -> bool:
        nonlocal active, peak
        if "partNumber=" in request.target:
            with lock:
                active += 1
                peak = max(peak, active)
            never.wait(HOLD_SECONDS)
            with lock:
                active -= 1
        return False

    bucket.faults = [hold_part]
    storage.put("large", large_file)

    assert 1 <= peak <= MAX_CONCURRENT_PARTS


def test_a_connection_lost_in_any_part_leaves_no_object_and_the_next_attempt_works(
    storage: Storage, bucket: RelayedBucket, large_file: Path
) -> None:
    for part in ("partNumber=1&", "partNumber=3&", "partNumber=5&"):
        bucket.faults = [lambda request, part=part: part in request.target]  # type: ignore[misc]
        with pytest.raises(OSError, match="the object store failed"):
            storage.put("large", large_file)
        bucket.faults = []
        assert not storage.has("large")

    storage.put("large", large_file)

    assert bucket.objects["indexes/large"] == large_file.read_bytes()


def test_half_a_response_is_an_error(storage: Storage, bucket: RelayedBucket, large_file: Path, tmp_path: Path) -> None:
    storage.put("large", large_file)
    bucket.cuts_responses = True

    with pytest.raises(OSError, match="the object store failed"):
        storage.fetch("large", tmp_path / "copy")


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_wrong_is_an_error_without_secrets(storage: Storage, bucket: RelayedBucket, hours: int) -> None:
    storage.put("known", b"value")

    def shift_clock(request: StoreRequest) -> bool:
        shifted = datetime.now(UTC) + timedelta(hours=hours)
        request.headers = {
            name: shifted.strftime("%Y%m%dT%H%M%SZ") if name.lower() == "x-amz-date" else value
            for name, value in request.headers.items()
        }
        return False

    bucket.faults = [shift_clock]
    with pytest.raises(OSError, match="the object store failed") as caught:
        storage.get("known")

    assert "secret" not in str(caught.value)
    bucket.faults = []
    assert storage.get("known") == b"value"


def test_credentials_that_expire_keep_readers_on_what_they_have(
    world: IndexedRepository, storage: Storage, server: S3Server, tmp_path: Path
) -> None:
    share = IndexShare("shop", storage, FilePointerStore(storage))
    with world.lease_current() as lease:
        share.publish(lease.folder)
    (tmp_path / "reader").mkdir()
    reader = GenerationStore(tmp_path / "reader-cache", Repository(tmp_path / "reader"))
    share.pull(reader)
    server.stop()
    server.secret = "another"
    server.start()

    with pytest.raises(OSError, match="the object store failed") as caught:
        share.pull(reader)

    assert "secret" not in str(caught.value)
    reader_lease = reader.lease_current()
    assert reader_lease is not None
    assert read_catalogue_content(reader_lease) == world.read_content()


def test_a_server_killed_while_a_builder_publishes_leaves_readers_a_whole_generation(
    world: IndexedRepository, storage: Storage, bucket: RelayedBucket, server: S3Server, tmp_path: Path
) -> None:
    share = IndexShare("shop", storage, FilePointerStore(storage))
    with world.lease_current() as lease:
        share.publish(lease.folder)
    before = world.read_content()
    world.write_file("shop/tax.py", "def tax(price):\n    return price / 5\n")
    world.build_index()
    puts = 0
    for moment in range(1, 20):
        puts = 0

        def kill_server(request: StoreRequest, moment: int = moment) -> bool:
            nonlocal puts
            puts += request.method == "PUT"
            if puts == moment:
                server.stop()
            return False

        bucket.faults = [kill_server]
        with world.lease_current() as lease:
            try:
                share.publish(lease.folder)
                failed = False
            except OSError:
                failed = True
        bucket.faults = []
        if server.process is None:
            server.start()
        (tmp_path / f"reader-{moment}").mkdir()
        reader = GenerationStore(tmp_path / f"cache-{moment}", Repository(tmp_path / f"reader-{moment}"))
        share.pull(reader)
        reader_lease = reader.lease_current()
        assert reader_lease is not None
        assert read_catalogue_content(reader_lease) in (before, world.read_content())
        if not failed:
            assert read_catalogue_content(reader_lease) == world.read_content()
            return
    pytest.fail("publishing never succeeded")


def test_nothing_is_listed_so_that_a_listing_may_be_late(
    world: IndexedRepository, storage: Storage, bucket: RelayedBucket, tmp_path: Path
) -> None:
    share = IndexShare("shop", storage, FilePointerStore(storage))
    with world.lease_current() as lease:
        share.publish(lease.folder)
    (tmp_path / "reader").mkdir()

    share.pull(GenerationStore(tmp_path / "cache", Repository(tmp_path / "reader")))

    assert bucket.targets
    assert all(target.startswith("/team/indexes/") or "delete" in target for target in bucket.targets)
    assert not any("list-type" in target for target in bucket.targets)
