"""The name of everything that the facts of a file depend on besides its bytes.

Facts are kept as long as the content of their file is the same, so whatever else they come from
must be known too: the code that makes them, the grammars, the rules of risk, the word table, the
limits. A change in any of them makes every fact old.
"""

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final

import msgspec

from cleats.contract.versions import TOOLING_VERSION
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.store.schema import SCHEMA

_CODE = Path(__file__).parents[1]

MAKERS: Final = (
    "facts.py",
    "extract.py",
    "discovery",
    "languages",
    "structure",
    "risk",
    "dense",
    *(f"search/{name}.py" for name in ("arrays", "columns", "digest", "fts", "parts")),
    *(f"search/{name}.py" for name in ("shards", "tokens", "vectors", "vocabulary")),
    "indexing/reading.py",
    "indexing/headlines.py",
)
"""What the facts of one file are made by, and the parts of an index that are made of them."""

SMALL: Final = 1 << 20
"""Bytes of a file of ours that is hashed; larger ones are data, and known by name and size."""

LIBRARIES: Final = ("numpy", "pystemmer", "tree-sitter")


def fingerprint(options: Options, *, vectors: bool) -> str:
    """The name for these options."""
    parts = (
        ours(),
        options.limits,
        vectors,
        [_content(path) for path in options.rule_files],
    )
    return hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()[:16]


@cache
def ours() -> str:
    """The part that cannot change while a process runs."""
    made = hashlib.sha256(f"{TOOLING_VERSION} {SCHEMA}".encode())
    for path in _sources():
        made.update(str(path.relative_to(_CODE)).encode())
        made.update(_content(path))
    for name in _libraries():
        made.update(f"{name}={_version(name)}".encode())
    return made.hexdigest()


def _sources() -> list[Path]:
    found: list[Path] = []
    for name in MAKERS:
        place = _CODE / name
        found += place.rglob("*") if place.is_dir() else [place]
    return sorted(path for path in found if path.is_file() and path.suffix != ".pyc")


def _content(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        return path.read_bytes() if size <= SMALL else str(size).encode()
    except OSError:
        return b""


def _libraries() -> list[str]:
    try:
        named = [_name(each) for each in requires("cleats") or ()]
    except PackageNotFoundError:  # run from its sources
        named = []
    return sorted({*LIBRARIES, *(name for name in named if name.startswith("tree-sitter-"))})


def _name(requirement: str) -> str:
    return requirement.partition(">")[0].partition("<")[0].partition("=")[0].strip()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
