"""The one line that stands for a chunk in a list of results."""

import re
from typing import Final

from cleats.toolsets.code.facts import Chunk

LENGTH: Final = 120
_SENTENCE = re.compile(r"(?<=[.!?])\s|\n\s*\n")


def headline(chunk: Chunk, text: bytes) -> str:
    """The first sentence of its documentation, else its signature, else its first line."""
    if chunk.mode == "extracted-prose":
        return _line(chunk.doc or chunk.comments) or _first(chunk, text)
    said = _SENTENCE.split(chunk.doc.strip(), maxsplit=1)[0]
    return _line(said) or _line(chunk.signature) or _first(chunk, text) or chunk.name


def _first(chunk: Chunk, text: bytes) -> str:
    ranges = chunk.own or [(chunk.start, chunk.end)]
    for start, end in ranges:
        for line in text[start : min(end, start + 4096)].decode(errors="replace").splitlines():
            if any(map(str.isalnum, line)):
                return _line(line)
    return ""


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LENGTH else line[: LENGTH - 1].rstrip() + "…"
