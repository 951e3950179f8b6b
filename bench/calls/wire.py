"""The messages of the benchmark: the frames the client sends, and what a right answer is.

Frames are made before the clock starts and answers are checked after it stops.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from bench.calls.process import Broken

PROTOCOL = "2025-11-25"


class Echo(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of a call, and all that its answer may hold."""

    text: str
    n: int


class _Content(msgspec.Struct):
    type: str
    text: str


class _Result(msgspec.Struct):
    content: list[_Content]
    is_error: bool = msgspec.field(name="isError", default=False)


class _Answer(msgspec.Struct):
    id: int
    result: _Result


_decode_answer = msgspec.json.Decoder(_Answer).decode
_decode_echo = msgspec.json.Decoder(Echo).decode


def initialize() -> bytes:
    """The handshake request; its id is 0."""
    return _frame(
        id=0,
        method="initialize",
        params={
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "0"},
        },
    )


def initialized() -> bytes:
    return _frame(method="notifications/initialized")


def calls(first: int, count: int) -> list[bytes]:
    """Requests with the ids `first`, `first + 1`, ...; no two carry the same text."""
    return [
        _frame(
            id=id_,
            method="tools/call",
            params={"name": "echo", "arguments": _echo(id_)},
        )
        for id_ in range(first, first + count)
    ]


def check_initialized(line: bytes) -> None:
    """Raises Broken unless the line answers `initialize` with a protocol version."""
    answer: Any = _parse(line)
    match answer:
        case {"id": 0, "result": {"protocolVersion": str()}}:
            return
    raise Broken(f"not an answer to initialize: {_short(line)}")


def check_calls(received: bytes, first: int, count: int, *, ordered: bool) -> None:
    """Raises Broken unless each of the calls was answered once, with its own arguments."""
    lines = received.splitlines()
    ids = [_check_call(line) for line in lines]
    expected = range(first, first + count)
    if (ids if ordered else sorted(ids)) != list(expected):
        stray = islice((id_ for id_ in ids if id_ not in expected), 3)
        raise Broken(f"{len(ids)} answers to {count} calls do not match them: {list(stray)}")


def _check_call(line: bytes) -> int:
    try:
        answer = _decode_answer(line)
        echo = _decode_echo(_only_text(answer.result.content))
    except (msgspec.DecodeError, ValueError):
        raise Broken(f"not an answer of echo: {_short(line)}") from None
    if answer.result.is_error or echo != _echo(answer.id):
        raise Broken(f"not what call {answer.id} asked for: {_short(line)}")
    return answer.id


def _only_text(content: Sequence[_Content]) -> str:
    (item,) = content
    return item.text


def _echo(id_: int) -> Echo:
    return Echo(text=f"call number {id_}", n=id_)


def _frame(**message: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n"


def _parse(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        raise Broken(f"not JSON: {_short(line)}") from None


def _short(line: bytes) -> str:
    return line[:200].decode(errors="replace").strip()
