"""The index of a server that lies in a cluster: published by who builds, searched by the others."""

import hashlib
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import SettingError, Settings
from cleats.toolsets.code.fleet.manifest import NAME
from cleats.toolsets.code.fleet.role import Role
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.opensearch.cluster import Cluster, ClusterError, Place, place, unavailable
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store.generations import Shelf
from cleats.toolsets.code.store.locks import claim

if TYPE_CHECKING:
    from cleats.toolsets.code.opensearch.together import Together
    from cleats.toolsets.code.search.request import Request

TRIES, TIMEOUT = 2, 30.0
"""Of a request of a search, and the seconds of each try: somebody waits for it."""

SOON: Final = 5.0
"""Seconds in which a cluster that is well says so."""

LOCK: Final = "opensearch.lock"
"""The file on a shelf that only one publisher of this machine holds."""


@dataclass(eq=False)
class Remote(Role):
    """One index in a cluster, as one server has it."""

    place: Place
    verified: ssl.SSLContext = field(repr=False)
    name: str
    publishes: bool
    root: Path
    pause: float
    shards: int = 1
    replicas: int = 1
    _seen: tuple[float, str, Mapping[str, Any]] | None = field(default=None, repr=False)

    @property
    def asked(self) -> str:
        """What a server does with it that does not build it."""
        return f"searches the index {self.name} in OpenSearch"

    async def search(self, make: "Callable[[], Request]") -> dict[str, Any]:
        """Answer a search that `make` reads, in a thread: its modules are large.

        Raises:
            ToolError: INVALID_REQUEST, it cannot be asked here; NO_INDEX, there is none;
                UNAVAILABLE, the cluster cannot be reached.
        """
        request = await to_thread.run_sync(make, abandon_on_cancel=True)
        try:
            async with Cluster(self.place, self.verified, TRIES, TIMEOUT) as cluster:
                return await self._answer(cluster, request)
        except ClusterError as error:
            raise unavailable(error, self.name) from None

    async def _answer(self, cluster: Cluster, request: "Request") -> dict[str, Any]:
        from cleats.toolsets.code.opensearch.asking import Asking, gone  # noqa: PLC0415 - large
        from cleats.toolsets.code.search.output import payload  # noqa: PLC0415 - as above

        fresh = self._seen is None
        index, meta = await self._current(cluster)
        try:
            stored, found = await Asking(cluster, index, meta).search(request)
        except ClusterError as error:
            self._seen = None
            if fresh or not gone(error):
                raise
            return await self._answer(cluster, request)  # a newer one has taken its place
        return await to_thread.run_sync(payload, stored, found)

    async def _current(self, cluster: Cluster) -> tuple[str, Mapping[str, Any]]:
        """The index that the alias is on, and what it says of itself."""
        if self._seen is not None and time.monotonic() < self._seen[0]:
            return self._seen[1:]
        listed = await cluster.ask("GET", self._described, missing=True) or {}
        known = [
            (each["mappings"]["_meta"]["cleats"], index)
            for index, each in listed.items()
            if each.get("mappings", {}).get("_meta", {}).get("cleats")
        ]
        if not known:
            raise _none(self.name, "nobody has published it yet")
        meta, index = max(known, key=lambda each: float(each[0]["began"]))
        await to_thread.run_sync(_fit, self.name, meta)
        self._seen = (time.monotonic() + self.pause, index, meta)
        return index, meta

    @property
    def _described(self) -> str:
        return f"/{quote(f'cleats-{self.name}')}/_mapping?filter_path=*.mappings._meta"

    async def answers(self) -> None:
        """Return when the cluster takes questions about this index.

        Raises:
            ClusterError: it cannot be reached, or refuses.
        """
        async with Cluster(self.place, self.verified, 1, SOON) as cluster:
            await cluster.ask("GET", self._described, missing=True)

    async def publish(self, shelf: Shelf, report: Callable[[Progress], None]) -> str:
        """Publish the generation of a shelf; why it did not work, empty when it did."""
        from cleats.toolsets.code.opensearch.publishing import Publisher  # noqa: PLC0415 - large

        if not self.publishes:
            return ""
        lock = claim(shelf.folder / LOCK)
        lease = shelf.current()
        try:
            if lock is None:
                return "Another process of this machine is publishing to OpenSearch."
            if lease is None:
                return ""
            async with Cluster(self.place, self.verified) as cluster:
                publisher = Publisher(
                    cluster, self.name, _builder(shelf), self.shards, self.replicas
                )
                await publisher.publish(lease.folder, _told(report))
        except ClusterError as error:
            return f"The index could not be published to OpenSearch: {error}."
        finally:
            if lease is not None:
                lease.close()
            if lock is not None:
                lock.release()
        return ""


def remote(settings: Settings, repository: Repository) -> "Remote | Together":
    """The index in a cluster that the settings name, or the indexes that are searched together.

    Raises:
        SettingError: the address or a name is none.
    """
    publishes = settings.index_share == "publish"
    own = repository.shared_name(settings.index_name)
    names = (own,) if publishes else settings.opensearch_indexes or (own,)
    for name in names:
        if not NAME.fullmatch(name):
            raise SettingError(f"index_name: {name!r} cannot be the name of a shared index")
    where = place(settings)
    try:
        verified = where.verified()
    except (OSError, ValueError) as error:
        raise SettingError(f"opensearch_ca: cannot be used: {error}") from None
    made = [
        Remote(
            where,
            verified,
            name,
            publishes,
            repository.root,
            settings.index_poll,
            settings.opensearch_shards,
            settings.opensearch_replicas,
        )
        for name in dict.fromkeys(names)
    ]
    if len(made) == 1:
        return made[0]
    from cleats.toolsets.code.opensearch.together import Together  # noqa: PLC0415 - it knows us

    return Together(made)


def _told(report: Callable[[Progress], None]) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        words = f"{done:,} of {total:,} documents in OpenSearch"
        report(Progress("publish", words, done, total))

    return tell


def _builder(shelf: Shelf) -> str:
    """Tells the shelves of machines apart, without saying which they are."""
    said = f"{socket.gethostname()} {shelf.folder}"
    return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()[:12]


def _fit(name: str, meta: Mapping[str, Any]) -> None:
    """Refuse an index that was made for another version: its words would mean something else."""
    from cleats.toolsets.code.opensearch.documents import form  # noqa: PLC0415 - large
    from cleats.toolsets.code.search.digest import word_table  # noqa: PLC0415 - as above

    table = word_table()
    own = table.fingerprint if table is not None else ""
    if meta.get("form") != form() or (meta.get("table") and own and meta["table"] != own):
        raise _none(name, "another version of cleats made it")


def _none(name: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.NO_INDEX,
        f"There is no index {name} in OpenSearch to search: {why}.",
        hint="Build and publish it with `cleats worker` where the repository is.",
    )
