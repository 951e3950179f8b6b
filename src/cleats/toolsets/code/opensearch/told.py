"""What the cluster knows of hits, as an answer reads it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cleats.toolsets.code.opensearch.documents import unpack
from cleats.toolsets.code.search import details
from cleats.toolsets.code.search.details import More, Row


@dataclass(frozen=True, slots=True)
class Stored:
    """The documents of the hits of one answer, and of their files."""

    chunks: Mapping[tuple[str, int], Mapping[str, Any]]
    """By path and number in the file."""
    files: Mapping[int, Mapping[str, Any]]
    """By the number of the file; only where the answer needs them."""
    _lines: dict[int, list[str]] = field(default_factory=dict)

    @property
    def details(self) -> "Stored":
        return self

    @contextmanager
    def reading(self) -> Iterator["Stored"]:
        yield self

    def row(self, path: str, ordinal: int) -> Row:
        """A chunk by its file and its number in it."""
        source = self.chunks[path, ordinal]
        hit = source["hit"]
        start, end, first, last = hit["range"]
        return Row(
            hit["file"],
            hit["path"],
            hit["lang"],
            source["mode"],
            hit["kind"],
            hit["name"],
            start,
            end,
            first,
            last,
            hit["headline"],
            ordinal,
        )

    def more(self, row: Row) -> More:
        """All the rest."""
        hit, file = self._hit(row), self.files[row.file]
        risk, authors, lint = (_packed(hit, name) for name in ("risk", "authors", "lint"))
        history = [file[name] for name in ("author", "modified", "commit", "churn")]
        facts, relations = unpack(hit["facts"]), unpack(file["facts"])
        return details.more(facts, risk, authors, lint, relations, *history)

    def signature(self, row: Row) -> str:
        """How a declaration begins; empty where there is none."""
        return details.signature(unpack(self._hit(row)["facts"]))

    def lines(self, row: Row) -> list[str]:
        """The lines of the chunk's file."""
        if row.file not in self._lines:
            self._lines[row.file] = details.lines(unpack(self.files[row.file]["text"]))
        return self._lines[row.file]

    def _hit(self, row: Row) -> Mapping[str, Any]:
        hit: Mapping[str, Any] = self.chunks[row.path, row.id]["hit"]
        return hit


def _packed(hit: Mapping[str, Any], name: str) -> bytes | None:
    return unpack(hit[name]) if name in hit else None
