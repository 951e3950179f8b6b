"""Ten thousand frames that mean harm neither kill nor silence the server, nor fatten it."""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peer import Peer, started

FRAMES = 10_000
VALID = [
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
STRANGE: list[Any] = [
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
RAW = [
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


def hostile(seed: int) -> Iterator[bytes]:
    """Truncated, mutated, nested, mistyped and plain nonsense, the same for the same seed."""
    dice = random.Random(seed)
    for _ in range(FRAMES):
        frame = json.dumps(dice.choice(VALID)).encode()
        match dice.randrange(5):
            case 0:
                yield frame[: dice.randrange(len(frame))]
            case 1:
                yield dice.choice(RAW)
            case 2:
                at = dice.randrange(len(frame))
                yield frame[:at] + dice.randbytes(dice.randrange(1, 6)) + frame[at + 1 :]
            case 3:
                yield json.dumps(mistyped(dice)).encode()
            case _:
                yield json.dumps(mistyped(dice)).encode().replace(b"2.0", dice.randbytes(3))


def mistyped(dice: random.Random) -> Any:
    """A valid message with one value, somewhere inside it, of another kind."""
    message = json.loads(json.dumps(dice.choice(VALID)))
    place: Any = message
    while True:
        key = dice.choice(list(place))
        if isinstance(place[key], dict) and place[key] and dice.random() < 0.6:
            place = place[key]
            continue
        place[key] = dice.choice(STRANGE)
        return message


def resident(peer: Peer) -> int:
    status = Path(f"/proc/{peer.process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_hostile_frames_neither_kill_nor_silence_nor_fatten_the_server(tmp_path: Path) -> None:
    with started(home=tmp_path, CLEATS_LOG_LEVEL="error") as peer:
        sizes = []
        for seed in range(2):
            for number, frame in enumerate(hostile(seed)):
                peer.send(frame.replace(b"\n", b" ") + b"\n")
                if number % 500 == 499:
                    peer.request(f"alive-{seed}-{number}", "ping")
                    assert peer.answer(f"alive-{seed}-{number}")["result"] == {}
                    peer.forget()
            sizes.append(resident(peer))

        # The second ten thousand cost nothing that the first had not warmed up already.
        assert sizes[1] - sizes[0] < 4096, f"grew from {sizes[0]} to {sizes[1]} KiB"
