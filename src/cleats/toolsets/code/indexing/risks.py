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
    lang: str = ""


_called = msgspec.msgpack.Decoder(_Called).decode
_relations = msgspec.msgpack.Decoder(Relations).decode
_summary = msgspec.msgpack.Decoder(Summary).decode
_pack = msgspec.msgpack.Encoder().encode

_FILES = "SELECT id, path, lang, facts FROM files WHERE mode = 'code'"
_CHUNKS = "SELECT id, file, name, facts, summary FROM chunks WHERE summary IS NOT NULL"


def add(catalogue: Catalogue) -> None:
    """Conclude what can be concluded, and note it."""
    found = {key: _pack(risk) for key, risk in link(_functions(catalogue)).items()}
    noted = dict(catalogue.connection.execute("SELECT id, risk FROM chunks WHERE risk IS NOT NULL"))
    changes: list[tuple[bytes | None, int]]
    changes = [(risk, key) for key, risk in found.items() if noted.get(key) != risk]
    changes += [(None, key) for key in noted if key not in found]
    catalogue.connection.executemany("UPDATE chunks SET risk = ? WHERE id = ?", changes)


def _functions(catalogue: Catalogue) -> Iterator[Linkable]:
    files = {
        file: (path, lang, _relations(relations).imports)
        for file, path, lang, relations in catalogue.connection.execute(_FILES)
    }
    for key, file, name, facts, summary in catalogue.connection.execute(_CHUNKS):
        if file in files:
            path, lang, imports = files[file]
            called = _called(facts)
            own = called.lang or lang
            yield Linkable(key, path, name, own, imports, called.params, _summary(summary))
