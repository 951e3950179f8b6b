"""A round-robin proxy in front of several HTTP servers: each request goes to the next one.

It does what any load balancer does and no more: a server that refuses the connection is passed
over, and one that dies in the middle of an answer takes the answer with it.

`python -m conformance.balancer COMMAND...` starts the listener twice, prints the address of the
proxy in front of the two, and serves until its stdin ends.
"""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from urllib.parse import urlsplit

from conformance.listening import PATH, until_stdin_ends
from conformance.processes import Broken, listening

LIMIT = 30.0
"""Seconds for the thread of a balancer to begin and to end."""


class Balancer:
    """Counts the requests that each server got."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.ports = ports
        self.port = 0
        self.served = dict.fromkeys(ports, 0)
        self._turns = cycle(ports)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def run(self, started: Callable[[], None]) -> None:
        """Serve until the stop; `started` is called when the port is known."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._loop = asyncio.get_running_loop()
        started()
        async with server:
            await self._stop.wait()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop(self) -> None:
        """Ask it to end, from any thread."""
        self._loop.call_soon_threadsafe(self._stop.set)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request for each connection: the client is told to open the next itself."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)  # the loop would let it be collected
        task.add_done_callback(self._tasks.discard)
        async with _closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")[:-2]
            fields = dict(line.lower().split(": ", 1) for line in lines[1:])
            body = await reader.readexactly(int(fields.get("content-length", 0)))
            kept = [line for line in lines if not line.lower().startswith("connection:")]
            sent = "\r\n".join([*kept, "connection: close", "", ""]).encode("latin-1") + body
            await self._forward(sent, writer)

    async def _forward(self, sent: bytes, writer: asyncio.StreamWriter) -> None:
        for _ in self.ports:
            port = next(self._turns)
            try:
                source, target = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                continue
            self.served[port] += 1
            async with _closing(target):
                target.write(sent)
                while data := await source.read(65536):
                    writer.write(data)
                    await writer.drain()
            return
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


@asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """A connection that is closed at the end, also when its peer is dead or the balancer stops."""
    with suppress(OSError, asyncio.IncompleteReadError):
        try:
            yield
        finally:
            writer.close()
            await writer.wait_closed()


@contextmanager
def balanced(*ports: int) -> Iterator[Balancer]:
    """A balancer in a thread of its own."""
    balancer = Balancer(ports)
    started = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(balancer.run(started.set)))
    thread.start()
    try:
        assert started.wait(LIMIT)
        yield balancer
    finally:
        balancer.stop()
        thread.join(LIMIT)


async def main(command: Sequence[str]) -> int:
    """Two listeners and the balancer in front of them."""
    nowhere = Path("/dev/stderr")
    try:
        async with listening(command, nowhere) as first, listening(command, nowhere) as second:
            ports = [urlsplit(url).port for url in (first, second)]
            balancer = Balancer([port for port in ports if port is not None])

            def started() -> None:
                sys.stdout.write(f"{balancer.url}{PATH}\n")
                sys.stdout.flush()

            until_stdin_ends(balancer.stop)
            await balancer.run(started)
    except Broken as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
