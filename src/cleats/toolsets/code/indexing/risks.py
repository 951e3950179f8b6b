"""Risk that crosses files, in the catalogue: what functions say together.

A change in one function can change what is concluded about any that calls it. Which those are is
known from the calls between functions, which are kept beside the catalogue; only what comes out
differently is written.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from cleats.toolsets.code.risk.linking import Linkable, relink
from cleats.toolsets.code.risk.links import Links
from cleats.toolsets.code.risk.summary import Summary
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.store.files import clone
from cleats.toolsets.code.store.rows import Relations

FILE: Final = "links.bin"
"""What the next build goes on from."""


class _Called(Struct):
    """The little of a chunk's facts that linking needs."""

    params: list[str] = []
    lang: str = ""


_called = msgspec.msgpack.Decoder(_Called).decode
_relations = msgspec.msgpack.Decoder(Relations).decode
_summary = msgspec.msgpack.Decoder(Summary).decode
_pack = msgspec.msgpack.Encoder().encode

_FILES = "SELECT id, path, lang, facts FROM files WHERE mode = 'code'"
_CHUNKS = "SELECT id, name, facts, summary FROM chunks WHERE file = ? AND summary IS NOT NULL"
_SUMMARY = "SELECT summary FROM chunks WHERE id = ?"


def add(
    catalogue: Catalogue, touched: Collection[str] | None, *, previous: Path | None, draft: Path
) -> None:
    """Conclude what can be concluded, and note it.

    Without `touched` about everything, else about what these files may have changed.
    """
    saved = previous / FILE if previous and touched is not None else None
    links = Links.load(saved.read_bytes()) if saved and saved.is_file() else None
    if saved and links is not None and not touched:
        clone(saved, draft / FILE)
        return
    if links is None:
        links, touched = Links(), None
    come = list(_functions(catalogue, touched))
    known = {one.key: one.summary for one in come}

    def read(keys: Sequence[int]) -> dict[int, Summary | None]:
        return {key: known[key] if key in known else _read(catalogue, key) for key in keys}

    found = relink(links, touched or (), come, read)
    _note(catalogue, found.items())
    (draft / FILE).write_bytes(links.save())


def _functions(catalogue: Catalogue, paths: Collection[str] | None) -> Iterator[Linkable]:
    for file, path, lang, relations in list(catalogue.connection.execute(_FILES)):
        if paths is not None and path not in paths:
            continue
        imports = _relations(relations).imports
        for key, name, facts, summary in catalogue.connection.execute(_CHUNKS, (file,)):
            called = _called(facts)
            own = called.lang or lang
            yield Linkable(key, path, name, own, imports, called.params, _summary(summary))


def _read(catalogue: Catalogue, key: int) -> Summary:
    return _summary(next(catalogue.connection.execute(_SUMMARY, (key,)))[0])


def _note(catalogue: Catalogue, found: Iterable[tuple[int, object | None]]) -> None:
    noted = dict(catalogue.connection.execute("SELECT id, risk FROM chunks WHERE risk IS NOT NULL"))
    packed = ((None if risk is None else _pack(risk), key) for key, risk in found)
    changes = [(risk, key) for risk, key in packed if noted.get(key) != risk]
    catalogue.connection.executemany("UPDATE chunks SET risk = ? WHERE id = ?", changes)
