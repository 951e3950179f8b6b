"""The worker's end of the channel from its supervisor: connections arrive, and the news that the server will stop."""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from cleats.runtime.shutdown import Shutdown
from cleats.system.processes.worker_group import (
    CLOSED_BYTE,
    CONNECTION_BYTE,
    ENDED_BYTE,
    READY_BYTE,
    STOP_BYTE,
    TAKEN_BYTE,
)

log = logging.getLogger(__name__)

MAX_READS_AT_ONCE: Final = 16
"""The messages that are read before other work gets its turn."""

RECEIVE_FLAGS: Final = socket.MSG_DONTWAIT | getattr(socket, "MSG_CMSG_CLOEXEC", 0)
"""Without the second one, a program that this process runs would keep the connections of clients open."""

REPORT_SECONDS: Final = 0.1
"""The interval between two reports of how many connections have ended."""


class SupervisorChannel:
    """The source of a worker's connections."""

    def __init__(self, channel: socket.socket) -> None:
        self.shutdown = Shutdown()
        """Requested when the server will stop, or when the supervisor has gone."""
        self.closed = asyncio.Event()
        """Set when no more connections will come."""
        self._channel = channel
        self._taken_count = self._ended_count = 0

    async def receive_connections(
        self, adopt: Callable[[socket.socket], object], count_open: Callable[[], int]
    ) -> None:
        """Pass every connection to `adopt` until none comes any more; report those that have ended.

        `count_open` returns how many connections are open.
        """
        loop = asyncio.get_running_loop()
        loop.add_reader(self._channel.fileno(), self._read, adopt)
        self._report(READY_BYTE)
        try:
            while not self.closed.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(REPORT_SECONDS):
                        await self.closed.wait()
                ended_count = max(0, self._taken_count - count_open())
                if ended_count > self._ended_count:
                    self._report(ENDED_BYTE * (ended_count - self._ended_count))
                    self._ended_count = ended_count
        finally:
            loop.remove_reader(self._channel.fileno())

    def _report(self, message: bytes) -> None:
        with suppress(OSError):  # the supervisor has gone, which the next read notices
            self._channel.sendall(message)

    def _read(self, adopt: Callable[[socket.socket], object]) -> None:
        for _ in range(MAX_READS_AT_ONCE):
            try:
                message, descriptors, _, _ = socket.recv_fds(self._channel, 1, 1, RECEIVE_FLAGS)
            except BlockingIOError:
                return
            except OSError:
                message, descriptors = b"", []
            if message == CONNECTION_BYTE:
                self._take_connection(descriptors, adopt)
            elif message == STOP_BYTE:
                self.shutdown.request("supervisor")
            else:
                if message != CLOSED_BYTE:
                    log.error("supervisor.gone")
                self.shutdown.request("supervisor")
                self.closed.set()
                asyncio.get_running_loop().remove_reader(self._channel.fileno())
                return

    def _take_connection(self, descriptors: list[int], adopt: Callable[[socket.socket], object]) -> None:
        self._report(TAKEN_BYTE)
        self._taken_count += 1
        if not descriptors:  # this process has too many open files
            log.error("connection.lost: too many open files")
            return
        connection = socket.socket(fileno=descriptors[0])
        connection.setblocking(False)
        adopt(connection)
