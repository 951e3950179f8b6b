"""A generation into a cluster: written aside, checked, and made current in one step.

Laws:

- The alias is on an index that has every document of its generation, or on nothing: an index is
  filled, counted and marked as done before the alias moves, and it moves from the old one to the
  new one at once.
- Publishing the same generation again changes nothing.
- Whatever was killed and when, searches go on in the last good index; what was left behind by this
  builder is removed by its next attempt, and what another left after a day.
- Only indexes that say of themselves that they are of this name are ever removed.
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

from cleats.toolsets.code.opensearch import fields
from cleats.toolsets.code.opensearch.cluster import Cluster, ClusterError, RefusedError
from cleats.toolsets.code.opensearch.documents import Document, about, documents, form

log = logging.getLogger(__name__)

BATCH_BYTES, BATCH_DOCUMENTS = 5 << 20, 1000
"""Of one request, whichever is reached first; a single document may have more bytes."""

KEPT: Final = 1
"""Generations that stay beside the current one: a search may still be in it."""

ABANDONED: Final = 86_400
"""Seconds after which an index that nobody finished is another builder's no more."""

Tell = Callable[[int, int], None]
"""Documents written, and of how many."""


@dataclass(frozen=True, slots=True)
class Held:
    """An index of this name in the cluster."""

    index: str
    meta: Mapping[str, Any]
    aliases: frozenset[str]

    @property
    def aliased(self) -> bool:
        """Whether searches are answered from it."""
        return alias(self.meta["name"]) in self.aliases

    @property
    def done(self) -> bool:
        return bool(self.meta.get("done"))

    @property
    def began(self) -> float:
        return float(self.meta.get("began", 0))


def alias(name: str) -> str:
    """What the current index of a name is called."""
    return f"cleats-{name}"


async def held(cluster: Cluster, name: str) -> list[Held]:
    """Every index of a name, whatever became of it; the oldest first.

    Raises:
        ClusterError: the cluster cannot be reached.
    """
    path = f"/{quote(alias(name))}-*?filter_path=*.aliases,*.mappings._meta"
    listed = await cluster.ask("GET", path, missing=True) or {}
    found = [
        Held(index, meta, frozenset(each.get("aliases", {})))
        for index, each in listed.items()
        if (meta := each.get("mappings", {}).get("_meta", {}).get("cleats"))
    ]
    # `shop-*` is also of `shop-2`: what an index says of itself counts.
    return sorted((each for each in found if each.meta.get("name") == name), key=lambda h: h.began)


@dataclass(frozen=True, slots=True)
class Publisher:
    """One builder of one name."""

    cluster: Cluster
    name: str
    builder: str
    """Tells this machine's attempts from those of others."""
    shards: int = 1
    replicas: int = 1
    clock: Callable[[], float] = time.time

    async def publish(self, folder: Path, tell: Tell = lambda _done, _total: None) -> str:
        """Make a generation the one that is searched; the name of its index.

        Raises:
            ClusterError: it did not work; the alias is where it was.
        """
        index = f"{alias(self.name)}-{folder.name}-v{form()}"
        known = await held(self.cluster, self.name)
        same = next((each for each in known if each.index == index), None)
        if same is None or not same.done:
            await self._remove([each.index for each in known if self._left_behind(each)])
            await self._fill(index, folder, tell)
            known = await held(self.cluster, self.name)
            same = next((each for each in known if each.index == index), None)
        if same is None or not same.aliased:
            await self._switch(index, known)
        others = [each for each in known if each.done and each.index != index and not each.aliased]
        before = [each for each in known if each.aliased and each.index != index]
        kept = [*others, *before][-KEPT:]
        with suppress(ClusterError):  # the next one tries again
            await self._remove([e.index for e in (*others, *before) if e not in kept])
        return index

    def _left_behind(self, each: Held) -> bool:
        mine = each.meta.get("builder") == self.builder
        old = self.clock() - each.began > ABANDONED
        return not each.done and not each.aliased and (mine or old)

    async def _fill(self, index: str, folder: Path, tell: Tell) -> None:
        meta = await to_thread.run_sync(about, folder)
        meta |= {"name": self.name, "builder": self.builder, "began": self.clock(), "done": False}
        body = fields.index(meta, shards=self.shards, replicas=self.replicas)
        # Written to by this name only: when somebody removes the index, nothing makes it anew.
        body["aliases"] = {_writing(index): {}}
        await self._create(index, body)
        try:
            await self._write(index, meta, folder, tell)
            await self.cluster.ask("POST", f"/{quote(index)}/_refresh")
            await self._count(index, meta["chunks"] + meta["files"])
            done = {"_meta": {"cleats": {**meta, "done": True}}}
            await self.cluster.ask("PUT", f"/{quote(index)}/_mapping", done)
            log.info("opensearch.filled index=%s chunks=%d", index, meta["chunks"])
        except OSError:
            with suppress(ClusterError):
                await self._remove([index])
            raise

    async def _create(self, index: str, body: dict[str, Any]) -> None:
        try:
            await self.cluster.ask("PUT", f"/{quote(index)}", body)
        except RefusedError as error:
            if error.kind != "resource_already_exists_exception":
                raise
            # A request that was answered too late and sent again, or another builder.
            own = [each for each in await held(self.cluster, self.name) if each.index == index]
            if not own or own[0].began != body["mappings"]["_meta"]["cleats"]["began"]:
                raise ClusterError(f"another builder is writing {index}") from None

    async def _write(self, index: str, meta: Mapping[str, Any], folder: Path, tell: Tell) -> None:
        total, written = meta["chunks"] + meta["files"], 0
        found = documents(folder, meta["dimensions"])
        batches = batched(found)
        try:
            while batch := await to_thread.run_sync(next, batches, ()):
                await self._bulk(index, batch)
                written += len(batch)
                tell(written, total)
        finally:
            batches.close()
            found.close()  # and the catalogue with it

    async def _bulk(self, index: str, batch: Sequence[tuple[str, bytes]]) -> None:
        """Write documents; those that the cluster has no room for now are sent again."""
        left = dict(batch)
        tries = self.cluster.tries or self.cluster.place.tries
        path = f"/{quote(_writing(index))}/_bulk?require_alias=true&filter_path=errors,items"
        for attempt in range(1, tries + 1):
            answer = await self.cluster.ask("POST", path, lines=b"".join(left.values()))
            if not answer.get("errors"):
                return
            failed = list(_failed(answer))
            later = {each for each, status, _ in failed if status == 429}
            for each, status, reason in failed:
                if status != 429 or attempt == tries:
                    raise ClusterError(f"document {each} was refused with {status}: {reason}")
            left = {each: line for each, line in left.items() if each in later}
            await self.cluster.rest(attempt)

    async def _count(self, index: str, expected: int) -> None:
        answer = await self.cluster.ask("GET", f"/{quote(index)}/_count")
        if answer["count"] != expected or answer["_shards"]["failed"]:
            raise ClusterError(f"{index} has {answer['count']} documents instead of {expected}")

    async def _switch(self, index: str, known: Sequence[Held]) -> None:
        """Move the alias from where it is known to be; refused when it is no longer there."""
        gone = [(each.index, alias(self.name)) for each in known if each.aliased]
        gone += [(index, _writing(index)) for each in known if _writing(index) in each.aliases]
        actions = [{"remove": {"index": each, "alias": called}} for each, called in gone]
        actions.append({"add": {"index": index, "alias": alias(self.name)}})
        try:
            await self.cluster.ask("POST", "/_aliases", {"actions": actions})
        except RefusedError as error:
            now = [each.index for each in await held(self.cluster, self.name) if each.aliased]
            if error.status != 404 or now != [index]:  # else the first try was the one that worked
                raise ClusterError(f"another builder has published {now or 'something'}") from None

    async def _remove(self, indexes: Sequence[str]) -> None:
        for index in indexes:
            await self.cluster.ask("DELETE", f"/{quote(index)}", missing=True)


def _writing(index: str) -> str:
    return f"{index}-writing"


def batched(found: Iterator[Document]) -> Generator[list[tuple[str, bytes]]]:
    """Documents as lines for a request each, by their ids; no request is larger than it must."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    encode = msgspec.json.encode
    for document in found:
        line = b"\n".join((encode({"index": {"_id": document.id}}), encode(document.body), b""))
        if batch and (size + len(line) > BATCH_BYTES or len(batch) >= BATCH_DOCUMENTS):
            yield batch
            batch, size = [], 0
        batch.append((document.id, line))
        size += len(line)
    if batch:
        yield batch


def _failed(answer: Mapping[str, Any]) -> Iterator[tuple[str, int, str]]:
    for item in chain.from_iterable(each.values() for each in answer["items"]):
        if not 200 <= item["status"] < 300:
            error = item.get("error") or {}
            yield item["_id"], item["status"], str(error.get("reason", ""))[:300]
