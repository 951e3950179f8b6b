"""Tests that ten thousand hostile frames neither kill, silence nor bloat the server."""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_client import ServerPeer, start_server

FRAME_COUNT = 10_000
VALID_MESSAGES = [
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
    {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "x"}, "_meta": {"progressToken": 1}},
    },
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}},
]
STRANGE_VALUES: list[Any] = [
    None,
    True,
    -1,
    1.5,
    10**40,
    -(10**400),
    "",
    "\x00",
    "\u2028",
    "é" * 100,
    [],
    {},
    [[]],
    {"a": {"b": []}},
]
RAW_FRAMES = [
    b"\x00",
    b"\xff\xfe",
    b'"\\ud800"',
    b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 10_000,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":'
    + b'{"a":' * 10_000
    + b"1"
    + b"}" * 10_002,
    b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}',
    b"NaN",
    b"-",
    b'{"jsonrpc":"2.0","id":1,"method":"ping","id":2}',
    b"\xef\xbb\xbf{}",
]


def generate_hostile_frames(seed: int) -> Iterator[bytes]:
    """Yield truncated, mutated, mistyped and nonsense frames, the same for the same seed."""
    rng = random.Random(seed)
    for _ in range(FRAME_COUNT):
        frame = json.dumps(rng.choice(VALID_MESSAGES)).encode()
        match rng.randrange(5):
            case 0:
                yield frame[: rng.randrange(len(frame))]
            case 1:
                yield rng.choice(RAW_FRAMES)
            case 2:
                position = rng.randrange(len(frame))
                yield frame[:position] + rng.randbytes(rng.randrange(1, 6)) + frame[position + 1 :]
            case 3:
                yield json.dumps(mistype_message(rng)).encode()
            case _:
                yield json.dumps(mistype_message(rng)).encode().replace(b"2.0", rng.randbytes(3))


def mistype_message(rng: random.Random) -> Any:
    """Return a valid message in which one value has another type."""
    message = json.loads(json.dumps(rng.choice(VALID_MESSAGES)))
    container: Any = message
    while True:
        key = rng.choice(list(container))
        if isinstance(container[key], dict) and container[key] and rng.random() < 0.6:
            container = container[key]
            continue
        container[key] = rng.choice(STRANGE_VALUES)
        return message


def read_resident_kib(peer: ServerPeer) -> int:
    status = Path(f"/proc/{peer.process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_hostile_frames_neither_kill_nor_silence_nor_fatten_the_server(tmp_path: Path) -> None:
    with start_server(home=tmp_path, CLEATS_LOG_LEVEL="error") as peer:
        sizes = []
        for seed in range(2):
            for number, frame in enumerate(generate_hostile_frames(seed)):
                peer.send(frame.replace(b"\n", b" ") + b"\n")
                if number % 500 == 499:
                    peer.send_request(f"alive-{seed}-{number}", "ping")
                    assert peer.wait_for_answer(f"alive-{seed}-{number}")["result"] == {}
                    peer.drop_unclaimed()
            sizes.append(read_resident_kib(peer))

        # The second ten thousand cost nothing that the first had not warmed up already.
        assert sizes[1] - sizes[0] < 4096, f"grew from {sizes[0]} to {sizes[1]} KiB"
