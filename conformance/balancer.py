"""A round-robin proxy in front of several HTTP servers: each request goes to the next one.

It does only what any load balancer does: a server that refuses the connection is skipped, and one
that dies in the middle of an answer takes the answer with it.

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

from conformance.listening import MCP_PATH, call_when_stdin_ends
from conformance.processes import BrokenProcessError, run_listener

THREAD_TIMEOUT_SECONDS = 30.0
"""Seconds for the thread of a balancer to start and to end."""


class RoundRobinBalancer:
    """A proxy that counts the requests of each server."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.ports = ports
        self.port = 0
        self.request_counts = dict.fromkeys(ports, 0)
        self._turns = cycle(ports)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def run(self, on_start: Callable[[], None]) -> None:
        """Serve until stopped; `on_start` is called when the port is known."""
        server = await asyncio.start_server(self._handle_connection, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._loop = asyncio.get_running_loop()
        on_start()
        async with server:
            await self._stop.wait()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop(self) -> None:
        """Stop the balancer, from any thread."""
        self._loop.call_soon_threadsafe(self._stop.set)

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one request per connection; the client is told to open a new one for the next."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)  # the loop would let it be collected
        task.add_done_callback(self._tasks.discard)
        async with _close_on_exit(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")[:-2]
            fields = dict(line.lower().split(": ", 1) for line in lines[1:])
            body = await reader.readexactly(int(fields.get("content-length", 0)))
            kept_lines = [line for line in lines if not line.lower().startswith("connection:")]
            request = "\r\n".join([*kept_lines, "connection: close", "", ""]).encode("latin-1") + body
            await self._forward_request(request, writer)

    async def _forward_request(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        for _ in self.ports:
            port = next(self._turns)
            try:
                source, target = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                continue
            self.request_counts[port] += 1
            async with _close_on_exit(target):
                target.write(request)
                while data := await source.read(65536):
                    writer.write(data)
                    await writer.drain()
            return
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


@asynccontextmanager
async def _close_on_exit(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Close a connection after the block, even if its peer is dead or the balancer stops."""
    with suppress(OSError, asyncio.IncompleteReadError):
        try:
            yield
        finally:
            writer.close()
            await writer.wait_closed()


@contextmanager
def run_balancer(*ports: int) -> Iterator[RoundRobinBalancer]:
    """Run a balancer in a separate thread."""
    balancer = RoundRobinBalancer(ports)
    started = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(balancer.run(started.set)))
    thread.start()
    try:
        assert started.wait(THREAD_TIMEOUT_SECONDS)
        yield balancer
    finally:
        balancer.stop()
        thread.join(THREAD_TIMEOUT_SECONDS)


async def main(command: Sequence[str]) -> int:
    """Run two listeners and the balancer in front of them."""
    log = Path("/dev/stderr")
    try:
        async with run_listener(command, log) as first, run_listener(command, log) as second:
            ports = [urlsplit(url).port for url in (first, second)]
            balancer = RoundRobinBalancer([port for port in ports if port is not None])

            def print_address() -> None:
                sys.stdout.write(f"{balancer.url}{MCP_PATH}\n")
                sys.stdout.flush()

            call_when_stdin_ends(balancer.stop)
            await balancer.run(print_address)
    except BrokenProcessError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
