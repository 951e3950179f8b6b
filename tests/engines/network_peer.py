"""A builder or a reader on a machine of its own: `network_peer ROLE STORE ADDRESS FOLDER`.

The builder publishes two generations in turn until a file `stop` appears; the reader searches. Both print what happened
as JSON lines.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from cleats.contract.errors import ToolError
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.sharing.manifest import FilePointerStore, InvalidGenerationError
from cleats.toolsets.code.sharing.opensearch.cluster import Cluster, ClusterAddress
from cleats.toolsets.code.sharing.opensearch.publishing import ClusterPublisher
from cleats.toolsets.code.sharing.opensearch.remote_index import RemoteIndex
from cleats.toolsets.code.sharing.shared_index import IndexShare
from cleats.toolsets.code.sharing.storage import open_storage
from tests.engines.cluster_world import GENERATIONS, Names, search_locally, search_remotely
from tests.engines.s3_server import ACCESS_KEY, BUCKET, REGION, SECRET_KEY

PAUSE_SECONDS = 0.1
NAME = "shop"


def open_share(address: str) -> IndexShare:
    """Open the shared index in the bucket as the settings do, with the retries of a user."""
    options = {"endpoint": address, "client_options": {"allow_http": True}}
    credentials = {"access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY, "region": REGION}
    storage = open_storage(f"s3://{BUCKET}/indexes", {**credentials, **options})
    return IndexShare(NAME, storage, FilePointerStore(storage))


def make_publish(store: str, address: str) -> Callable[[Path], object]:
    """Return the function that publishes a generation."""
    if store == "s3":
        return open_share(address).publish
    cluster_address = ClusterAddress(address)
    context = cluster_address.create_ssl_context()

    async def publish(folder: Path) -> None:
        async with Cluster(cluster_address, context) as cluster:
            await ClusterPublisher(cluster, NAME, "builder", 1, 0).publish(folder)

    return lambda folder: anyio.run(publish, folder)


def make_search(store: str, address: str, folder: Path) -> Callable[[], Names]:
    """Return the function that answers the queries of one round."""
    if store != "s3":
        cluster_address = ClusterAddress(address)
        index = RemoteIndex(cluster_address, cluster_address.create_ssl_context(), NAME, False, folder, 0.1)
        return lambda: search_remotely(index)
    share = open_share(address)
    (folder / "reader").mkdir()
    generations = GenerationStore(folder / "reader-cache", Repository(folder / "reader"))

    def pull_and_search() -> Names:
        share.pull(generations)
        lease = generations.lease_current()
        assert lease is not None, "nothing is published"
        with lease:
            return search_locally(lease.folder)

    return pull_and_search


def run_builder(store: str, address: str, folder: Path) -> None:
    """Publish until told to stop; the last publication is complete."""
    publish = make_publish(store, address)
    number = 0
    while True:
        generation = GENERATIONS[number % len(GENERATIONS)]
        try:
            publish(folder / generation)
        except OSError as error:
            report(failed=str(error))
        else:
            report(published=generation)
            if (folder / "stop").exists():
                return
            number += 1
        time.sleep(PAUSE_SECONDS)


def run_reader(store: str, address: str, folder: Path) -> None:
    """Search until killed."""
    search = make_search(store, address, folder)
    while True:
        started_at = time.monotonic()
        try:
            answer = search()
        except ToolError as error:
            report(failed=error.code.name, seconds=time.monotonic() - started_at)
        except (OSError, AssertionError, InvalidGenerationError) as error:
            report(failed=str(error), seconds=time.monotonic() - started_at)
        else:
            report(answer=answer, seconds=time.monotonic() - started_at)
        time.sleep(PAUSE_SECONDS)


def report(**event: object) -> None:
    """Print one line."""
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    {"build": run_builder, "read": run_reader}[sys.argv[1]](sys.argv[2], sys.argv[3], Path(sys.argv[4]))
