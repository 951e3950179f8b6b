"""The indexes of a server in a cluster: published by the builder, searched by the other servers.

Several indexes can be searched as one corpus; other machines build them.
"""

import hashlib
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import anyio
from anyio import to_thread

from cleats.contract.errors import ToolError
from cleats.settings import SettingError, Settings
from cleats.system.atomic_files import try_exclusive_lock
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.index.progress import BuildProgress
from cleats.toolsets.code.index.service import RemoteIndexPort
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.sharing.manifest import check_index_name, missing_index_error
from cleats.toolsets.code.sharing.opensearch.cluster import (
    Cluster,
    ClusterAddress,
    ClusterError,
    build_search_error,
    read_cluster_address,
)

if TYPE_CHECKING:
    from cleats.toolsets.code.query.request import SearchRequest
    from cleats.toolsets.code.search.file_evidence import FileTable

SEARCH_ATTEMPTS, SEARCH_TIMEOUT_SECONDS = 2, 30.0
"""Attempts of a search request, and the seconds of each: a caller waits for it."""

HEALTH_TIMEOUT_SECONDS: Final = 5.0
"""Seconds in which a healthy cluster responds."""

LOCK_FILENAME: Final = "opensearch.lock"
"""The file in a generation store that only one publisher of this machine holds."""


@dataclass(eq=False)
class RemoteIndex(RemoteIndexPort):
    """One index in a cluster, as used by one server."""

    address: ClusterAddress
    ssl_context: ssl.SSLContext = field(repr=False)
    name: str
    publishes: bool
    root: Path
    pause: float
    shards: int = 1
    replicas: int = 1
    _current_index: tuple[float, str, Mapping[str, Any]] | None = field(default=None, repr=False)
    _file_tables: "dict[str, FileTable]" = field(default_factory=dict, repr=False)

    @property
    def reader_activity(self) -> str:
        return f"searches the index {self.name} in OpenSearch"

    async def search(self, build_request: "Callable[[], SearchRequest]") -> dict[str, Any]:
        """Answer a search; `build_request` runs in a thread because its modules are large.

        Raises:
            ToolError: INVALID_REQUEST, the cluster does not support the request; NO_INDEX, there is
                none; UNAVAILABLE, the cluster cannot be reached.
        """
        request = await to_thread.run_sync(build_request, abandon_on_cancel=True)
        try:
            async with Cluster(self.address, self.ssl_context, SEARCH_ATTEMPTS, SEARCH_TIMEOUT_SECONDS) as cluster:
                return await self._search_current_index(cluster, request)
        except ClusterError as error:
            raise build_search_error(error, self.name) from None

    async def _search_current_index(self, cluster: Cluster, request: "SearchRequest") -> dict[str, Any]:
        from cleats.toolsets.code.search.output import render_answer  # noqa: PLC0415 - as above
        from cleats.toolsets.code.sharing.opensearch.requests import IndexSearcher, is_index_gone  # noqa: PLC0415 - large

        is_fresh = self._current_index is None
        index, meta = await self._find_current_index(cluster)
        try:
            stored, result = await IndexSearcher(cluster, index, meta, self._file_tables).search(request)
        except ClusterError as error:
            self._current_index = None
            if is_fresh or not is_index_gone(error):
                raise
            return await self._search_current_index(cluster, request)  # a newer index has replaced it
        return await to_thread.run_sync(render_answer, stored, result)

    async def _find_current_index(self, cluster: Cluster) -> tuple[str, Mapping[str, Any]]:
        if self._current_index is not None and time.monotonic() < self._current_index[0]:
            return self._current_index[1:]
        mappings_by_index = await cluster.send("GET", self._mapping_path, allow_missing=True) or {}
        candidates = [
            (item["mappings"]["_meta"]["cleats"], index)
            for index, item in mappings_by_index.items()
            if item.get("mappings", {}).get("_meta", {}).get("cleats")
        ]
        if not candidates:
            raise missing_index_error(f"index {self.name} in OpenSearch to search", "it has not been published yet")
        meta, index = max(candidates, key=lambda item: float(item[0]["began"]))
        await to_thread.run_sync(_check_compatible, self.name, meta)
        self._current_index = (time.monotonic() + self.pause, index, meta)
        return index, meta

    @property
    def _mapping_path(self) -> str:
        return f"/{quote(f'cleats-{self.name}')}/_mapping?filter_path=*.mappings._meta"

    async def check_reachable(self) -> None:
        """Check that the cluster answers requests about this index.

        Raises:
            ClusterError: it cannot be reached, or rejects the request.
        """
        async with Cluster(self.address, self.ssl_context, 1, HEALTH_TIMEOUT_SECONDS) as cluster:
            await cluster.send("GET", self._mapping_path, allow_missing=True)

    async def publish(self, store: GenerationStore, on_progress: Callable[[BuildProgress], None]) -> str:
        """Publish the current generation of a store; return the reason of a failure or ''."""
        from cleats.toolsets.code.sharing.opensearch.publishing import ClusterPublisher  # noqa: PLC0415 - large

        def report_documents(done: int, total: int) -> None:
            message = f"{done:,} of {total:,} documents in OpenSearch"
            on_progress(BuildProgress("publish", message, done, total))

        if not self.publishes:
            return ""
        lock = try_exclusive_lock(store.folder / LOCK_FILENAME)
        lease = store.lease_current()
        try:
            if lock is None:
                return "Another process of this machine is publishing to OpenSearch."
            if lease is None:
                return ""
            async with Cluster(self.address, self.ssl_context) as cluster:
                publisher = ClusterPublisher(cluster, self.name, _builder_id(store), self.shards, self.replicas)
                await publisher.publish(lease.folder, report_documents)
        except ClusterError as error:
            return f"The index could not be published to OpenSearch: {error}."
        finally:
            if lease is not None:
                lease.close()
            if lock is not None:
                lock.release()
        return ""


class RemoteIndexGroup(RemoteIndexPort):
    """Indexes that other machines build; their answers are merged like those of a workspace."""

    publishes = False

    def __init__(self, indexes: Sequence[RemoteIndex]) -> None:
        self.indexes = indexes
        self.name = ",".join(index.name for index in indexes)
        self.root = indexes[0].root

    @property
    def reader_activity(self) -> str:
        return self.indexes[0].reader_activity

    async def search(self, build_request: "Callable[[], SearchRequest]") -> dict[str, Any]:
        """Answer a search from all indexes, or not at all.

        Raises:
            ToolError: the error of the first index that failed.
        """
        request = await to_thread.run_sync(build_request, abandon_on_cancel=True)
        answers: dict[str, dict[str, Any]] = {}
        errors: list[ToolError] = []

        async def search_index(index: RemoteIndex) -> None:
            try:
                answers[index.name] = await index.search(lambda: request)
            except ToolError as error:
                errors.append(error)

        async with anyio.create_task_group() as group:
            for index in self.indexes:
                group.start_soon(search_index, index)
        if errors:
            raise errors[0]
        named_answers = [(index.name, answers[index.name]) for index in self.indexes]
        return await to_thread.run_sync(_merge_answers, request, named_answers)

    async def check_reachable(self) -> None:
        """Check that the cluster, which all indexes share, answers requests."""
        await self.indexes[0].check_reachable()

    async def publish(self, _store: GenerationStore, _on_progress: Callable[[BuildProgress], None]) -> str:
        """Do nothing: these indexes are published by other machines."""
        return ""


def _merge_answers(request: "SearchRequest", answers: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    from cleats.toolsets.code.query.request import HitLimits  # noqa: PLC0415 - as above
    from cleats.toolsets.code.search.output import (  # noqa: PLC0415 - large
        RepositoryAnswer,
        is_lean,
        merge_answers,
    )

    parts = [RepositoryAnswer(name, name, answer) for name, answer in answers]
    limits = HitLimits(request.top, request.other_top or request.top)
    return merge_answers(parts, limits, lean=is_lean(request.output, explain=request.explain))


def open_remote_index(settings: Settings, repository: Repository) -> RemoteIndex | RemoteIndexGroup:
    """Return the index in a cluster that the settings name, or the group of indexes to search.

    Raises:
        SettingError: the address or a name is invalid.
    """
    publishes = settings.code.index_share == "publish"
    own_name = repository.shared_name(settings.code.index_name)
    chosen_names = (own_name,) if publishes else settings.code.opensearch_indexes or (own_name,)
    names = dict.fromkeys(map(check_index_name, chosen_names))
    address = read_cluster_address(settings)
    try:
        ssl_context = address.create_ssl_context()
    except (OSError, ValueError) as error:
        raise SettingError(f"opensearch_ca: cannot be used: {error}") from None
    indexes = [
        RemoteIndex(
            address,
            ssl_context,
            name,
            publishes,
            repository.root,
            settings.code.index_poll,
            settings.code.opensearch_shards,
            settings.code.opensearch_replicas,
        )
        for name in names
    ]
    return indexes[0] if len(indexes) == 1 else RemoteIndexGroup(indexes)


def _builder_id(store: GenerationStore) -> str:
    """Return an id that distinguishes the stores of machines without revealing them."""
    identity = f"{socket.gethostname()} {store.folder}"
    return hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()[:12]


def _check_compatible(name: str, meta: Mapping[str, Any]) -> None:
    """Reject an index of another version, whose words would have other meanings."""
    from cleats.toolsets.code.index.digest import load_word_table  # noqa: PLC0415 - as above
    from cleats.toolsets.code.sharing.opensearch.documents import format_version  # noqa: PLC0415 - large

    table = load_word_table()
    own_fingerprint = table.fingerprint if table is not None else ""
    if meta.get("form") != format_version() or (
        meta.get("table") and own_fingerprint and meta["table"] != own_fingerprint
    ):
        raise missing_index_error(f"index {name} in OpenSearch to search", "another version of Cleats wrote it")
