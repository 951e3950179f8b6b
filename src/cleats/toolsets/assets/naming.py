"""What schemas are called, and which one an asset is for."""

from collections.abc import Container, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

FALLBACK: Final = "synesthetic-asset"
"""What an asset is when nothing says what it is."""

NESTED: Final = "nested-synesthetic-asset"

ALIASES: Final[Mapping[str, str]] = {NESTED: FALLBACK}
"""Names that validate as another schema. They are not listed and have no document of their own."""

MARKERS: Final = ("$schemaRef", "$schema")
"""Top-level keys by which an asset points at its schema. They are about the asset, not of it."""

NESTED_PREFIX: Final = "SynestheticAsset"
"""How the file names of nested assets begin."""

SUFFIXES: Final = (".schema.json", ".json")
"""What a schema's file is called after its name, the stronger first."""


def canonical(name: str) -> str:
    """The schema behind a name."""
    return ALIASES.get(name, name)


def file_name(name: str) -> str | None:
    """The schema that a file of this name holds; None for a file that holds none."""
    for suffix in SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix)
    return None


def marked(asset: object) -> str | None:
    """The schema that an asset itself names; None when it names none.

    `schema` is a name, a marker is a path or a URL of which the last part counts. A `$schema`
    that is no file is the URL of a dialect, which says nothing here.
    """
    if not isinstance(asset, Mapping):
        return None
    name = asset.get("schema")
    if isinstance(name, str) and name.strip():
        return _base(name)
    for marker in MARKERS:
        value = asset.get(marker)
        if isinstance(value, str) and (marker == "$schemaRef" or value.endswith(".json")):
            return _base(value)
    return None


def inferred(asset: object, path: str, known: Container[str]) -> str:
    """The schema of a file: what it says, else what it is called, or the folder that it is in."""
    at = PurePosixPath(path)
    if (said := marked(asset)) is not None:
        return said
    if at.name.startswith(NESTED_PREFIX):
        return NESTED
    called = prefix(path)
    return at.parent.name if called not in known and at.parent.name in known else called


def assumed(asset: object, path: str, known: Container[str]) -> str:
    """The same for a file that is surely an asset: a nested one when nothing else is said."""
    name = inferred(asset, path, known)
    unsaid = marked(asset) is None and canonical(name) not in known
    return NESTED if unsaid and FALLBACK in known else name


def prefix(path: str) -> str:
    """The name of a file up to its first dot."""
    return PurePosixPath(path).name.partition(".")[0]


def is_plain(name: str) -> bool:
    """Whether a name can be a schema's at all, and is no attempt to be a path."""
    parts = name.replace("\\", "/").split("/")
    return bool(name) and len(parts) == 1 and ".." not in parts and "\0" not in name


def without_markers(asset: Any, markers: tuple[str, ...]) -> Any:
    """The asset itself, when it carries no marker; else a copy without them."""
    if isinstance(asset, dict) and any(marker in asset for marker in markers):
        return {key: value for key, value in asset.items() if key not in markers}
    return asset


def _base(reference: str) -> str:
    last = reference.strip().partition("#")[0].replace("\\", "/").rstrip("/").rpartition("/")[2]
    return file_name(last) or last
