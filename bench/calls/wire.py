"""The messages of the benchmark: the frames that the client sends, and the check of the answers.

Frames are made before the clock starts and answers are checked after it stops.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from bench.calls.process import BenchmarkError

PROTOCOL_VERSION = "2025-11-25"


class EchoArguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of a call, which its answer must repeat exactly."""

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
_decode_echo = msgspec.json.Decoder(EchoArguments).decode


def build_initialize() -> bytes:
    """Build the handshake request, whose id is 0."""
    return _encode_frame(
        id=0,
        method="initialize",
        params={
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "0"},
        },
    )


def build_initialized() -> bytes:
    return _encode_frame(method="notifications/initialized")


def build_calls(first: int, count: int) -> list[bytes]:
    """Build requests with the ids `first`, `first + 1`, ..., each with a different text."""
    return [
        _encode_frame(
            id=id_,
            method="tools/call",
            params={"name": "echo", "arguments": _build_echo(id_)},
        )
        for id_ in range(first, first + count)
    ]


def check_initialized(line: bytes) -> None:
    """Raise BenchmarkError unless the line answers `initialize` with a protocol version."""
    answer: Any = _parse_line(line)
    match answer:
        case {"id": 0, "result": {"protocolVersion": str()}}:
            return
    raise BenchmarkError(f"not an answer to initialize: {_shorten_line(line)}")


def check_calls(received: bytes, first: int, count: int, *, ordered: bool) -> None:
    """Raise BenchmarkError unless each call was answered once, with its own arguments."""
    lines = received.splitlines()
    ids = [_check_call(line) for line in lines]
    expected = range(first, first + count)
    if (ids if ordered else sorted(ids)) != list(expected):
        stray = islice((id_ for id_ in ids if id_ not in expected), 3)
        raise BenchmarkError(f"{len(ids)} answers to {count} calls do not match them: {list(stray)}")


def _check_call(line: bytes) -> int:
    try:
        answer = _decode_answer(line)
        echo = _decode_echo(_extract_text(answer.result.content))
    except (msgspec.DecodeError, ValueError):
        raise BenchmarkError(f"not an answer of echo: {_shorten_line(line)}") from None
    if answer.result.is_error or echo != _build_echo(answer.id):
        raise BenchmarkError(f"not what call {answer.id} asked for: {_shorten_line(line)}")
    return answer.id


def _extract_text(content: Sequence[_Content]) -> str:
    (item,) = content
    return item.text


def _build_echo(id_: int) -> EchoArguments:
    return EchoArguments(text=f"call number {id_}", n=id_)


def _encode_frame(**message: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n"


def _parse_line(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        raise BenchmarkError(f"not JSON: {_shorten_line(line)}") from None


def _shorten_line(line: bytes) -> str:
    return line[:200].decode(errors="replace").strip()
