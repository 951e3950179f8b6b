"""Risk that crosses files, in the catalogue: what functions say together.

A change in one function can change what is concluded about any that calls it, so all are linked
again; only what comes out differently is written.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from cleats.toolsets.code.risk.linking import Linkable, link
from cleats.toolsets.code.risk.summary import Summary
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.store.rows import Relations


class _Called(Struct):
    """The little of a chunk's facts that linking needs."""

    params: list[str] = []
    calls: list[str] = []
    lang: str = ""


_called = msgspec.msgpack.Decoder(_Called).decode
_relations = msgspec.msgpack.Decoder(Relations).decode
_summary = msgspec.msgpack.Decoder(Summary).decode
_pack = msgspec.msgpack.Encoder().encode

_FILES = "SELECT id, path, lang, facts FROM files WHERE mode = 'code' ORDER BY path"
_CHUNKS = (
    "SELECT id, name, facts, summary FROM chunks WHERE file = ? AND mode = 'code' ORDER BY ordinal"
)


def add(catalogue: Catalogue) -> None:
    """Conclude what can be concluded, and note it."""
    found = {key: _pack(risk) for key, risk in link(_functions(catalogue)).items()}
    noted = dict(catalogue.connection.execute("SELECT id, risk FROM chunks WHERE risk IS NOT NULL"))
    changes: list[tuple[bytes | None, int]]
    changes = [(risk, key) for key, risk in found.items() if noted.get(key) != risk]
    changes += [(None, key) for key in noted if key not in found]
    catalogue.connection.executemany("UPDATE chunks SET risk = ? WHERE id = ?", changes)


def _functions(catalogue: Catalogue) -> Iterator[Linkable]:
    for file, path, lang, relations in list(catalogue.connection.execute(_FILES)):
        imports = _relations(relations).imports
        for key, name, facts, summary in catalogue.connection.execute(_CHUNKS, (file,)):
            called = _called(facts)
            yield Linkable(
                key=key,
                path=path,
                name=name,
                lang=called.lang or lang,
                imports=imports,
                params=called.params,
                calls=called.calls,
                summary=None if summary is None else _summary(summary),
            )
