"""Publication of a generation to a cluster: written, checked, and made current in one step.

Laws:

- The alias points to an index that has every document of its generation, or to nothing: an index is filled, counted and
  marked as done before the alias moves, and the alias moves from the old index to the new one in one step.
- Publishing the same generation again changes nothing.
- If a publisher is killed at any time, searches continue in the last good index; the leftovers of this builder are
  removed by its next attempt, those of another builder after a day.
- Only indexes whose metadata carries this name are ever removed.
"""

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
from anyio import to_thread

from cleats.toolsets.code.sharing.opensearch.cluster import Cluster, ClusterError, ClusterRejectedError
from cleats.toolsets.code.sharing.opensearch.documents import (
    IndexDocument,
    build_index_body,
    describe_generation,
    format_version,
    read_documents,
)

log = logging.getLogger(__name__)

BATCH_BYTES, BATCH_DOCUMENTS = 5 << 20, 1000
"""Limits of one request, whichever is reached first; a single document may have more bytes."""

RETAINED_GENERATIONS: Final = 1
"""Generations kept besides the current one, because a search may still use them."""

ABANDONED_AFTER_SECONDS: Final = 86_400
"""Seconds after which another builder's unfinished index counts as abandoned."""

PublishProgressCallback = Callable[[int, int], None]
"""Receives the number of documents written and the total."""


@dataclass(frozen=True, slots=True)
class ClusterIndex:
    """An index of this name in the cluster."""

    index: str
    meta: Mapping[str, Any]
    aliases: frozenset[str]

    @property
    def is_current(self) -> bool:
        """True if searches use this index."""
        return build_alias(self.meta["name"]) in self.aliases

    @property
    def is_complete(self) -> bool:
        return bool(self.meta.get("done"))

    @property
    def started_at(self) -> float:
        return float(self.meta.get("began", 0))


def build_alias(name: str) -> str:
    """Return the alias of the current index of a name."""
    return f"cleats-{name}"


async def list_indexes(cluster: Cluster, name: str) -> list[ClusterIndex]:
    """Return every index of a name in any state, oldest first.

    Raises:
        ClusterError: the cluster cannot be reached.
    """
    path = f"/{quote(build_alias(name))}-*?filter_path=*.aliases,*.mappings._meta"
    mappings_by_index = await cluster.send("GET", path, allow_missing=True) or {}
    indexes = [
        ClusterIndex(index, meta, frozenset(item.get("aliases", {})))
        for index, item in mappings_by_index.items()
        if (meta := item.get("mappings", {}).get("_meta", {}).get("cleats"))
    ]
    # `shop-*` also matches `shop-2`: the metadata of an index decides.
    return sorted(
        (item for item in indexes if item.meta.get("name") == name), key=lambda cluster_index: cluster_index.started_at
    )


@dataclass(frozen=True, slots=True)
class ClusterPublisher:
    """A builder that publishes the index of one name."""

    cluster: Cluster
    name: str
    builder: str
    """Distinguishes the attempts of this machine from those of others."""
    shards: int = 1
    replicas: int = 1
    clock: Callable[[], float] = time.time

    async def publish(self, folder: Path, on_progress: PublishProgressCallback = lambda _done, _total: None) -> str:
        """Make a generation the one that is searched; return the name of its index.

        Raises:
            ClusterError: it failed; the alias is unchanged.
        """
        index = f"{build_alias(self.name)}-{folder.name}-v{format_version()}"
        indexes = await list_indexes(self.cluster, self.name)
        published_index = next((candidate for candidate in indexes if candidate.index == index), None)
        if published_index is None or not published_index.is_complete:
            await self._remove_indexes([candidate.index for candidate in indexes if self._is_abandoned(candidate)])
            await self._fill_index(index, folder, on_progress)
            indexes = await list_indexes(self.cluster, self.name)
            published_index = next((candidate for candidate in indexes if candidate.index == index), None)
        if published_index is None or not published_index.is_current:
            await self._move_alias(index, indexes)
        completed = [
            candidate
            for candidate in indexes
            if candidate.is_complete and candidate.index != index and not candidate.is_current
        ]
        replaced = [candidate for candidate in indexes if candidate.is_current and candidate.index != index]
        retained = [*completed, *replaced][-RETAINED_GENERATIONS:]
        with suppress(ClusterError):  # the next publication tries again
            await self._remove_indexes(
                [old_index.index for old_index in (*completed, *replaced) if old_index not in retained]
            )
        return index

    def _is_abandoned(self, index: ClusterIndex) -> bool:
        is_own = index.meta.get("builder") == self.builder
        is_old = self.clock() - index.started_at > ABANDONED_AFTER_SECONDS
        return not index.is_complete and not index.is_current and (is_own or is_old)

    async def _fill_index(self, index: str, folder: Path, on_progress: PublishProgressCallback) -> None:
        meta = await to_thread.run_sync(describe_generation, folder)
        meta |= {"name": self.name, "builder": self.builder, "began": self.clock(), "done": False}
        body = build_index_body(meta, shards=self.shards, replicas=self.replicas)
        # Written through this alias only, so that a removed index is never recreated by a write.
        body["aliases"] = {_writing_alias(index): {}}
        await self._create_index(index, body)
        try:
            await self._write_documents(index, meta, folder, on_progress)
            await self.cluster.send("POST", f"/{quote(index)}/_refresh")
            await self._check_count(index, count_documents(meta))
            done = {"_meta": {"cleats": {**meta, "done": True}}}
            await self.cluster.send("PUT", f"/{quote(index)}/_mapping", done)
            log.info("opensearch.filled index=%s chunks=%d", index, meta["chunks"])
        except OSError:
            with suppress(ClusterError):
                await self._remove_indexes([index])
            raise

    async def _create_index(self, index: str, body: dict[str, Any]) -> None:
        try:
            await self.cluster.send("PUT", f"/{quote(index)}", body)
        except ClusterRejectedError as error:
            if error.kind != "resource_already_exists_exception":
                raise
            # A request that was answered too late and sent again, or another builder.
            same_indexes = [item for item in await list_indexes(self.cluster, self.name) if item.index == index]
            if not same_indexes or same_indexes[0].started_at != body["mappings"]["_meta"]["cleats"]["began"]:
                raise ClusterError(f"another builder is writing {index}") from None

    async def _write_documents(
        self, index: str, meta: Mapping[str, Any], folder: Path, on_progress: PublishProgressCallback
    ) -> None:
        total, written = count_documents(meta), 0
        generation_documents = read_documents(folder, meta["dimensions"])
        batches = batch_documents(generation_documents)
        try:
            while batch := await to_thread.run_sync(next, batches, ()):
                await self._write_batch(index, batch)
                written += len(batch)
                on_progress(written, total)
        finally:
            batches.close()
            generation_documents.close()  # this closes the catalogue too

    async def _write_batch(self, index: str, batch: Sequence[tuple[str, bytes]]) -> None:
        """Write a batch of documents, retrying those that the cluster has no capacity for."""
        remaining = dict(batch)
        tries = self.cluster.tries or self.cluster.address.tries
        path = f"/{quote(_writing_alias(index))}/_bulk?require_alias=true&filter_path=errors,items"
        for attempt in range(1, tries + 1):
            answer = await self.cluster.send("POST", path, ndjson=b"".join(remaining.values()))
            if not answer.get("errors"):
                return
            failed = list(_iterate_failures(answer))
            rejected_ids = {document_id for document_id, status, _ in failed if status == 429}
            for document_id, status, reason in failed:
                if status != 429 or attempt == tries:
                    raise ClusterError(f"document {document_id} was refused with {status}: {reason}")
            remaining = {document_id: line for document_id, line in remaining.items() if document_id in rejected_ids}
            await self.cluster.wait_before_retry(attempt)

    async def _check_count(self, index: str, expected: int) -> None:
        answer = await self.cluster.send("GET", f"/{quote(index)}/_count")
        if answer["count"] != expected or answer["_shards"]["failed"]:
            raise ClusterError(f"{index} has {answer['count']} documents instead of {expected}")

    async def _move_alias(self, index: str, indexes: Sequence[ClusterIndex]) -> None:
        """Move the alias from its known position; fail if it is no longer there."""
        removed_aliases = [(item.index, build_alias(self.name)) for item in indexes if item.is_current]
        removed_aliases += [(index, _writing_alias(index)) for item in indexes if _writing_alias(index) in item.aliases]
        # By default, a cluster ignores a removal that finds nothing as long as another action has an effect.
        actions: list[dict[str, dict[str, Any]]] = [
            {"remove": {"index": item, "alias": alias_name, "must_exist": True}} for item, alias_name in removed_aliases
        ]
        actions.append({"add": {"index": index, "alias": build_alias(self.name)}})
        try:
            await self.cluster.send("POST", "/_aliases", {"actions": actions})
        except ClusterRejectedError as error:
            current = [item.index for item in await list_indexes(self.cluster, self.name) if item.is_current]
            if error.status != 404 or current != [index]:  # otherwise an earlier attempt succeeded
                raise ClusterError(f"another builder has published {current or 'something'}") from None

    async def _remove_indexes(self, indexes: Sequence[str]) -> None:
        for index in indexes:
            await self.cluster.send("DELETE", f"/{quote(index)}", allow_missing=True)


def count_documents(meta: Mapping[str, Any]) -> int:
    """Return the number of documents of a described generation: chunks, files, words and the table of files."""
    return int(meta["chunks"]) + int(meta["files"]) + int(meta["words"]) + 1


def _writing_alias(index: str) -> str:
    return f"{index}-writing"


def batch_documents(documents_to_write: Iterator[IndexDocument]) -> Generator[list[tuple[str, bytes]]]:
    """Group documents by id into encoded batches, each no larger than necessary."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    encode = msgspec.json.encode
    for document in documents_to_write:
        line = b"\n".join((encode({"index": {"_id": document.id}}), encode(document.body), b""))
        if batch and (size + len(line) > BATCH_BYTES or len(batch) >= BATCH_DOCUMENTS):
            yield batch
            batch, size = [], 0
        batch.append((document.id, line))
        size += len(line)
    if batch:
        yield batch


def _iterate_failures(answer: Mapping[str, Any]) -> Iterator[tuple[str, int, str]]:
    for item in chain.from_iterable(action.values() for action in answer["items"]):
        if not 200 <= item["status"] < 300:
            error = item.get("error") or {}
            yield item["_id"], item["status"], str(error.get("reason", ""))[:300]
