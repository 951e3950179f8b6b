"""Hits as lines of a terminal: where they are, what they are, and the words that were found."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import click

from cleats.cli.printing import clip, escaped, heading, room, width
from cleats.toolsets.code.search import tokens
from cleats.toolsets.code.search.query import parse
from cleats.toolsets.code.search.query_tree import leaves

MODES: Final[Mapping[str, str]] = {
    "code": "Code",
    "prose": "Documents",
    "extractedProse": "Comments and docstrings",
    "records": "Records",
}

TELLING: Final = 3
"""Lines of a hit that are shown besides its first."""

WHOLE: Final = 60
"""Lines of a hit that are shown when its surroundings are asked for."""


class Printer:
    """Prints an answer."""

    def __init__(
        self, answer: Mapping[str, Any], wanted: Mapping[str, Any], *, compact: bool, full: bool
    ) -> None:
        self._answer = answer
        self._compact, self._full = compact, full
        self._around = bool(wanted.get("context"))
        words = (piece for leaf in leaves(parse(wanted["query"])) for piece in _words(leaf.text))
        self._stems = frozenset(map(tokens.stem, words))

    def show(self) -> None:
        """Print every hit."""
        listed = [mode for mode in MODES if self._answer[mode]]
        for number, mode in enumerate(listed):
            if len(listed) > 1 and not self._compact:
                click.echo(("\n" if number else "") + heading(MODES[mode]))
            for hit in self._answer[mode]:
                click.echo(self._line(hit) if self._compact else self._block(hit))

    def _line(self, hit: Mapping[str, Any]) -> str:
        where = f"{_file(hit)}:{hit['startLine']}"
        what = escaped(f"{hit['kind']} {hit['name']}")
        left = room(max(20, width() - len(where) - len(what) - 6))
        return f"{_place(where)}: {_name(what)}  {clip(hit['headline'], left)}"

    def _block(self, hit: Mapping[str, Any]) -> str:
        where = f"{_file(hit)}:{hit['startLine']}-{hit['endLine']}"
        what = _name(escaped(f"{hit['kind']} {hit['name']}"))
        lines = [f"{_place(where)}  {what}  {hit['score']:.4g}"]
        lines += self._breakdown(hit)
        if self._full:
            lines += _facts(hit)
        lines += self._text(hit)
        return "\n".join(lines)

    def _text(self, hit: Mapping[str, Any]) -> Iterator[str]:
        own = list(enumerate(hit["text"].split("\n"), hit["startLine"]))
        if self._around:
            before = hit["startLine"] - len(hit["preContext"])
            shown = [*enumerate(hit["preContext"], before), *own[:WHOLE]]
            if len(own) <= WHOLE:
                shown += enumerate(hit["postContext"], hit["endLine"] + 1)
        elif self._full:
            shown = own
        else:
            shown = self._telling(own)
        digits = len(str(shown[-1][0])) if shown else 1
        last = None
        for number, line in shown:
            if last is not None and number != last + 1:
                yield click.style("  " + " " * digits + " ⋮", dim=True)
            last = number
            margin = click.style(f"  {number:>{digits}} │ ", dim=True)
            yield (margin + self._marked(line)).rstrip()
        if self._full and hit.get("truncated"):
            rest = f"{_file(hit)}:{hit['startLine'] + len(own)}-{hit['endLine']}"
            yield click.style(f"  The rest: cleats show {rest}", dim=True)

    def _telling(self, own: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """The first line that says anything, and those with the most words of the query."""
        first = next((each for each in own if any(map(str.isalnum, each[1]))), own[0])
        scored = [(-len(self._stems & _stems(line)), number, line) for number, line in own]
        best = sorted(each for each in scored if each[0] and each[1] != first[0])[:TELLING]
        return sorted([first, *((number, line) for _, number, line in best)])

    def _marked(self, line: str) -> str:
        """A line with the words of the query marked."""
        plain = clip_end(escaped(line.expandtabs(4)), room(width() - 10))
        places = [0]
        for found in tokens.WORD.finditer(plain):
            if self._stems & _stems(found[0]):
                places += found.span()
        places.append(len(plain))
        parts = [plain[start:end] for start, end in pairwise(places)]
        return "".join(
            click.style(part, fg="red", bold=True) if number % 2 else part
            for number, part in enumerate(parts)
        )

    def _breakdown(self, hit: Mapping[str, Any]) -> Iterator[str]:
        for part in hit.get("scoreBreakdown", {}).get("parts", []):
            rank = "" if part["rank"] is None else f"  rank {part['rank']}, {part['score']:.4g}"
            yield click.style(f"    {part['points']:.6f}  {part['name']}{rank}", dim=True)


def _file(hit: Mapping[str, Any]) -> str:
    return escaped(f"{hit['repo']}:{hit['file']}" if "repo" in hit else hit["file"])


def _facts(hit: Mapping[str, Any]) -> Iterator[str]:
    known = hit["docmeta"] | {"author": hit["lastAuthor"], "modified": hit["lastModified"]}
    for name, value in known.items():
        if value and name not in {"doc", "comments", "own", "fields", "types"}:
            said = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield click.style("    " + clip(f"{name}: {said}", room(width() - 4)), dim=True)


def clip_end(line: str, room: int | None) -> str:
    """A line of at most this length, spaces kept."""
    return line if room is None or len(line) <= room else line[: room - 1] + "…"


def _words(text: str) -> list[str]:
    pieces = tokens.pieces(text)
    return [piece for piece in pieces if piece not in tokens.STOP] or pieces


def _stems(text: str) -> frozenset[str]:
    return frozenset(tokens.stemmed(text).split())


def _place(text: str) -> str:
    return click.style(text, fg="cyan")


def _name(text: str) -> str:
    return click.style(text, bold=True)
