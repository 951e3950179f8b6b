"""A client that speaks raw bytes to a real server process, and waits with a limit for answers."""

import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

LIMIT = 90.0
"""Seconds before a wait is given up; far beyond anything a healthy server needs."""

PROBE = (sys.executable, "-m", "tests.servers.probe")
ROOT = Path(__file__).parent.parent

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}


class Peer:
    """One server process and the conversation with it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.lines: list[bytes] = []
        self.stderr = b""
        self._frames: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._unclaimed: list[dict[str, Any]] = []
        self._wake = os.pipe()
        self._threads = [
            threading.Thread(target=self._read_frames, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def request(self, request_id: Any, method: str, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        self.send(message if params is None else {**message, "params": params})

    def notify(self, method: str, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        self.send(message if params is None else {**message, "params": params})

    def call(self, request_id: Any, tool: str, meta: Any = None, /, **arguments: Any) -> None:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if meta is not None:
            params["_meta"] = meta
        self.request(request_id, "tools/call", params)

    def initialize(self, version: str = "2025-11-25") -> dict[str, Any]:
        self.request("init", "initialize", {**INITIALIZE, "protocolVersion": version})
        answer = self.answer("init")
        self.notify("notifications/initialized")
        result: dict[str, Any] = answer["result"]
        return result

    def receive(self) -> dict[str, Any]:
        """The next frame that nobody has asked for."""
        if self._unclaimed:
            return self._unclaimed.pop(0)
        return self._next()

    def answer(self, request_id: Any) -> dict[str, Any]:
        """The answer to one request; other frames are kept for later."""
        for frame in self._unclaimed:
            if "method" not in frame and frame.get("id") == request_id:
                self._unclaimed.remove(frame)
                return frame
        while True:
            frame = self._next()
            if "method" not in frame and frame.get("id") == request_id:
                return frame
            self._unclaimed.append(frame)

    def _next(self) -> dict[str, Any]:
        frame = self._frames.get(timeout=LIMIT)
        assert frame is not None, f"the server is gone: {self.stderr.decode()}"
        return frame

    def forget(self) -> None:
        """Drop the frames that came before the last answer."""
        self._unclaimed.clear()

    def rest(self) -> list[dict[str, Any]]:
        """Every frame until the server closes its output."""
        frames, self._unclaimed = self._unclaimed, []
        while (frame := self._frames.get(timeout=LIMIT)) is not None:
            frames.append(frame)
        return frames

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def abandon(self) -> None:
        """Close the server's output as well, as a client does that dies."""
        os.close(self._wake[1])

    def wait(self) -> int:
        code = self.process.wait(LIMIT)
        for thread in self._threads:
            thread.join(LIMIT)
        return code

    def close(self) -> None:
        """Let go of every descriptor, once the process is gone."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
        for end in self._wake:
            with suppress(OSError):
                os.close(end)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def _read_frames(self) -> None:
        assert self.process.stdout is not None
        source = self.process.stdout.fileno()
        pending = b""
        while source in select.select([source, self._wake[0]], [], [])[0]:
            chunk = os.read(source, 1 << 16)
            if not chunk:
                break
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                self.lines.append(line + b"\n")
                self._frames.put(json.loads(line))
        self.process.stdout.close()
        self._frames.put(None)

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line


class LegacyPeer(Peer):
    """The same over Content-Length frames."""

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        super().send(message if isinstance(message, bytes) else sized(message))

    def _read_frames(self) -> None:
        assert self.process.stdout is not None
        while (header := self.process.stdout.readline()).startswith(b"Content-Length: "):
            assert self.process.stdout.readline() == b"\r\n"
            body = self.process.stdout.read(int(header.split()[1]))
            self.lines.append(body)
            self._frames.put(json.loads(body))
        assert header == b"", "something else is on stdout"
        self._frames.put(None)


def sized(message: Mapping[str, Any] | bytes) -> bytes:
    """A message as a Content-Length frame."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def started(
    *command: str, home: Path, ready: bool = True, **environ: str
) -> AbstractContextManager[Peer]:
    """A server in a home of its own; killed if the test leaves it running."""
    return _started(Peer, command, home, environ, ready=ready)


def legacy(
    *command: str, home: Path, ready: bool = True, **environ: str
) -> AbstractContextManager[Peer]:
    """The same for a server that speaks the legacy wire."""
    return _started(LegacyPeer, command, home, environ, ready=ready)


@contextmanager
def _started(
    kind: type[Peer],
    command: Sequence[str],
    home: Path,
    environ: Mapping[str, str],
    *,
    ready: bool,
) -> Iterator[Peer]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CLEATS_", "PAIROFCLEATS_", "XDG_", "SYN_", "OTEL_"))
    }
    process = subprocess.Popen(
        command or PROBE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**clean, "HOME": str(home), "PYTHONPATH": str(ROOT), **environ},
        cwd=home,
    )
    peer = kind(process)
    try:
        if ready:
            peer.initialize()
        yield peer
    finally:
        process.kill()
        peer.wait()
        peer.close()
