"""Scripts inside a page, read as what they are.

All that is not script is blanked, byte for byte, so that the engine of its language can read the
page as if it were a program, and every place it names is one of the page.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from cleats.toolsets.code.facts import Chunk

_BLANK = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))


class Parsed(Protocol):
    """What an engine makes of a program."""

    @property
    def chunks(self) -> list[Chunk]: ...


def script_of(data: bytes, chunks: list[Chunk], lang: str) -> bytes:
    """A page as a program: only what stands inside its scripts of one language is left."""
    pieces: list[bytes] = []
    at = 0
    for start, end in _insides(data, chunks, lang):
        pieces += (data[at:start].translate(_BLANK), data[start:end])
        at = end
    return b"".join((*pieces, data[at:].translate(_BLANK)))


def _insides(data: bytes, chunks: list[Chunk], lang: str) -> Iterator[tuple[int, int]]:
    for chunk in chunks:
        if chunk.lang == lang:
            start = data.find(b">", chunk.start, chunk.end) + 1
            end = data.rfind(b"</", chunk.start, chunk.end)
            if 0 < start <= end:
                yield start, end


def nested(
    data: bytes, chunks: list[Chunk], lang: str, read: Callable[[bytes], Parsed]
) -> list[Chunk]:
    """The declarations in the scripts of one language, cut out of the scripts' own text."""
    found = [
        chunk for chunk in read(script_of(data, chunks, lang)).chunks if chunk.kind != "module"
    ]
    for chunk in found:
        chunk.lang = lang
    for script in chunks:
        if script.lang == lang:
            script.own = _without(script, found)
    return found


def _without(script: Chunk, found: list[Chunk]) -> list[tuple[int, int]]:
    own: list[tuple[int, int]] = []
    at = script.start
    for chunk in sorted(found, key=lambda chunk: (chunk.start, -chunk.end)):
        if at <= chunk.start and chunk.end <= script.end:
            if at < chunk.start:
                own.append((at, chunk.start))
            at = chunk.end
    if at == script.start:
        return []
    return [*own, (at, script.end)] if at < script.end else own
