"""The name of everything that the facts of a file depend on besides its bytes.

Facts are kept as long as the content of their file is the same, so whatever else they come from
must be known too: the code that makes them, the grammars, the rules of risk, the word table, the
limits. A change in any of them makes every fact old.
"""

import hashlib
import os
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from cleats.contract.versions import TOOLING_VERSION
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.store.schema import SCHEMA

_CODE = str(Path(__file__).parents[1])

MAKERS: Final = (
    "facts.py",
    "extract.py",
    "discovery",
    "languages",
    "structure",
    "risk",
    "dense",
    *(f"search/{name}.py" for name in ("arrays", "digest", "filling", "fts")),
    *(f"search/{name}.py" for name in ("parts", "postings", "segments", "tokens")),
    "indexing/reading.py",
    "indexing/headlines.py",
    "triage/records.py",
    "triage/page.py",
)
"""What the facts of one file are made by, and the parts of an index that are made of them."""

SMALL: Final = 1 << 20
"""Bytes of a file of ours that is hashed; larger ones are data, and known by name and size."""

_LIBRARY = re.compile(
    r"(numpy|pystemmer|tantivy|tree_sitter\w*)-[^/]+\.(dist|egg)-info", re.IGNORECASE
)


def fingerprint(options: Options, *, vectors: bool) -> str:
    """The name for these options."""
    parts = (
        ours(),
        options.limits,
        vectors,
        [_content(str(path)) for path in options.rule_files],
    )
    return hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()[:16]


@cache
def ours() -> str:
    """The part that cannot change while a process runs."""
    made = hashlib.sha256(f"{TOOLING_VERSION} {SCHEMA}".encode())
    for path in _sources():
        made.update(path.removeprefix(_CODE).encode())
        made.update(_content(path))
    made.update("\n".join(_libraries()).encode())
    return made.hexdigest()


def _sources() -> list[str]:
    found: list[str] = []
    for name in MAKERS:
        place = os.path.join(_CODE, name)  # noqa: PTH118 - a Path for every file is dear
        if place.endswith(".py"):
            found.append(place)
        for folder, _, names in os.walk(place):
            if not folder.endswith("__pycache__"):
                found += (f"{folder}/{each}" for each in names)
    return sorted(found)


def _content(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            size = os.fstat(file.fileno()).st_size
            return file.read() if size <= SMALL else str(size).encode()
    except OSError:
        return b""


def _libraries() -> list[str]:
    """The libraries that facts depend on with their versions, by the names they are installed as.

    To ask for the versions properly takes as long as the rest of a look that finds no change.
    """
    spec = find_spec("tree_sitter")
    if spec is None or spec.origin is None:
        return []
    installed = os.listdir(Path(spec.origin).parents[1])  # noqa: PTH208
    return sorted(filter(_LIBRARY.match, installed))
