"""The figures of all workers added up, for `/metrics`, the status tools and the console.

What a worker has counted survives its crash: it keeps a copy in a file, and its successor goes on from there. So a
counter that was read never falls.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from cleats.runtime.recent_calls import FinishedCall, RecentCalls
from cleats.runtime.server_status import ServerStatus, StatusFigures
from cleats.system.atomic_files import replace_file
from cleats.transports.http.monitoring import HttpTraffic, TrafficFigures
from cleats.transports.http.workers.peers import WorkerPeers

SAVE_SECONDS: Final = 1.0
"""The interval between two copies; a crash loses what was counted since the last one, unless it was read."""


class WorkerFigures(Struct, frozen=True):
    """Everything that one worker tells the others."""

    status: StatusFigures
    traffic: TrafficFigures
    recent_calls: list[FinishedCall]


_decode = msgspec.msgpack.Decoder(WorkerFigures).decode


class FiguresExchange:
    """The figures of this worker, and those of the others."""

    def __init__(
        self, folder: Path, peers: WorkerPeers, status: ServerStatus, traffic: HttpTraffic, recent_calls: RecentCalls
    ) -> None:
        self._folder, self._peers = folder, peers
        self._status, self._traffic, self._recent_calls = status, traffic, recent_calls
        self._saved = b""
        status.read_other_processes = self._read_status
        traffic.read_other_processes = self._read_traffic
        recent_calls.read_other_processes = self._read_recent_calls

    def restore(self) -> None:
        """Go on from the figures of the worker that had this place."""
        if (figures := self._load(self._peers.slot)) is not None:
            self._status.add_counts(figures.status)
            self._traffic.add_counts(figures.traffic)
            self._recent_calls.add_calls(figures.recent_calls)

    def encode(self) -> bytes:
        """Return the figures of this worker, which somebody is about to read, and keep a copy."""
        figures = WorkerFigures(
            self._status.export_figures(), self._traffic.export_figures(), self._recent_calls.export_calls()
        )
        encoded = msgspec.msgpack.encode(figures)
        if encoded != self._saved:
            with suppress(OSError):
                replace_file(self._path(self._peers.slot), encoded, synced=False)
                self._saved = encoded
        return encoded

    async def save_regularly(self) -> None:
        """Keep a copy up to date until cancelled."""
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            self.encode()

    async def _read_status(self) -> Sequence[StatusFigures]:
        return [figures.status for figures in await self._read_others()]

    async def _read_traffic(self) -> Sequence[TrafficFigures]:
        return [figures.traffic for figures in await self._read_others()]

    async def _read_recent_calls(self) -> Sequence[FinishedCall]:
        return [call for figures in await self._read_others() for call in figures.recent_calls]

    async def _read_others(self) -> list[WorkerFigures]:
        self.encode()
        slots = [slot for slot in range(self._peers.count) if slot != self._peers.slot]
        return [figures for figures in await asyncio.gather(*map(self._read_worker, slots)) if figures is not None]

    async def _read_worker(self, slot: int) -> WorkerFigures | None:
        encoded = await self._peers.read_figures(slot)
        if encoded is not None:
            return _decode(encoded)
        # It is being restarted: what it had counted stays counted, but nothing runs there.
        figures = self._load(slot)
        if figures is None:
            return None
        status = msgspec.structs.replace(figures.status, load={}, open_calls=[])
        return msgspec.structs.replace(figures, status=status)

    def _load(self, slot: int) -> WorkerFigures | None:
        try:
            return _decode(self._path(slot).read_bytes())
        except (OSError, msgspec.MsgspecError):
            return None

    def _path(self, slot: int) -> Path:
        return self._folder / f"{slot}.figures"
