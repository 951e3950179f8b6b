"""A client that exchanges raw bytes with a real server process, with a timeout for answers."""

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

from tests.support.paths import REPOSITORY_ROOT

WAIT_TIMEOUT_SECONDS = 90.0
"""Seconds before a wait fails; far more than a healthy server ever needs."""

PROBE_COMMAND = (sys.executable, "-m", "tests.support.servers.probe")

INITIALIZE_PARAMS = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}
ENVELOPE_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}


class ServerPeer:
    """One server process and the conversation with it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.lines: list[bytes] = []
        self.stderr = b""
        self._frames: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._unclaimed: list[dict[str, Any]] = []
        self._wake_pipe = os.pipe()
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

    def send_request(self, request_id: Any, method: str, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        self.send(message if params is None else {**message, "params": params})

    def send_notification(self, method: str, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        self.send(message if params is None else {**message, "params": params})

    def send_call(self, request_id: Any, tool: str, meta: Any = None, /, **arguments: Any) -> None:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if meta is not None:
            params["_meta"] = meta
        self.send_request(request_id, "tools/call", params)

    def initialize(self, version: str = "2025-11-25") -> dict[str, Any]:
        self.send_request("init", "initialize", {**INITIALIZE_PARAMS, "protocolVersion": version})
        answer = self.wait_for_answer("init")
        self.send_notification("notifications/initialized")
        result: dict[str, Any] = answer["result"]
        return result

    def receive(self) -> dict[str, Any]:
        """Return the next frame that no caller has claimed."""
        if self._unclaimed:
            return self._unclaimed.pop(0)
        return self._next_frame()

    def wait_for_answer(self, request_id: Any) -> dict[str, Any]:
        """Wait for the answer to one request; other frames are kept for later."""
        for frame in self._unclaimed:
            if "method" not in frame and frame.get("id") == request_id:
                self._unclaimed.remove(frame)
                return frame
        while True:
            frame = self._next_frame()
            if "method" not in frame and frame.get("id") == request_id:
                return frame
            self._unclaimed.append(frame)

    def _next_frame(self) -> dict[str, Any]:
        frame = self._frames.get(timeout=WAIT_TIMEOUT_SECONDS)
        assert frame is not None, f"the server is gone: {self.stderr.decode()}"
        return frame

    def drop_unclaimed(self) -> None:
        """Drop the frames that arrived before the last answer."""
        self._unclaimed.clear()

    def read_remaining(self) -> list[dict[str, Any]]:
        """Return every frame until the server closes its output."""
        frames, self._unclaimed = self._unclaimed, []
        while (frame := self._frames.get(timeout=WAIT_TIMEOUT_SECONDS)) is not None:
            frames.append(frame)
        return frames

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close_output(self) -> None:
        """Close the server's output as well, as a dying client does."""
        os.close(self._wake_pipe[1])

    def wait_for_exit(self) -> int:
        code = self.process.wait(WAIT_TIMEOUT_SECONDS)
        for thread in self._threads:
            thread.join(WAIT_TIMEOUT_SECONDS)
        return code

    def close(self) -> None:
        """Close every descriptor after the process has ended."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
        for end in self._wake_pipe:
            with suppress(OSError):
                os.close(end)

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def _read_frames(self) -> None:
        assert self.process.stdout is not None
        source = self.process.stdout.fileno()
        pending = b""
        while source in select.select([source, self._wake_pipe[0]], [], [])[0]:
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


class LegacyServerPeer(ServerPeer):
    """A peer that uses Content-Length frames."""

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        super().send(message if isinstance(message, bytes) else encode_legacy_frame(message))

    def _read_frames(self) -> None:
        assert self.process.stdout is not None
        while (header := self.process.stdout.readline()).startswith(b"Content-Length: "):
            assert self.process.stdout.readline() == b"\r\n"
            body = self.process.stdout.read(int(header.split()[1]))
            self.lines.append(body)
            self._frames.put(json.loads(body))
        assert header == b"", "something else is on stdout"
        self._frames.put(None)


def encode_legacy_frame(message: Mapping[str, Any] | bytes) -> bytes:
    """Encode a message as a Content-Length frame."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def start_server(*command: str, home: Path, ready: bool = True, **environ: str) -> AbstractContextManager[ServerPeer]:
    """Start a server in a home of its own; it is killed if the test leaves it running."""
    return _start_peer(ServerPeer, command, home, environ, ready=ready)


def start_legacy_server(
    *command: str, home: Path, ready: bool = True, **environ: str
) -> AbstractContextManager[ServerPeer]:
    """Start a server that speaks the legacy wire, as `start_server` does."""
    return _start_peer(LegacyServerPeer, command, home, environ, ready=ready)


@contextmanager
def _start_peer(
    kind: type[ServerPeer],
    command: Sequence[str],
    home: Path,
    environ: Mapping[str, str],
    *,
    ready: bool,
) -> Iterator[ServerPeer]:
    inherited_environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CLEATS_", "PAIROFCLEATS_", "XDG_", "SYN_", "OTEL_"))
    }
    process = subprocess.Popen(
        command or PROBE_COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**inherited_environ, "HOME": str(home), "PYTHONPATH": str(REPOSITORY_ROOT), **environ},
        cwd=home,
    )
    peer = kind(process)
    try:
        if ready:
            peer.initialize()
        yield peer
    finally:
        process.kill()
        peer.wait_for_exit()
        peer.close()
