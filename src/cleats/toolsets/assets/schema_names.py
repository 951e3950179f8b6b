"""Names of schemas, and the choice of a schema for an asset."""

from collections.abc import Container, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

FALLBACK_SCHEMA: Final = "synesthetic-asset"
"""The schema of an asset when nothing else determines it."""

NESTED_SCHEMA: Final = "nested-synesthetic-asset"

SCHEMA_ALIASES: Final[Mapping[str, str]] = {NESTED_SCHEMA: FALLBACK_SCHEMA}
"""Names that validate as another schema. They are not listed and have no document."""

SCHEMA_MARKERS: Final = ("$schemaRef", "$schema")
"""Top-level keys by which an asset refers to its schema. They are metadata, not content."""

NESTED_FILE_PREFIX: Final = "SynestheticAsset"
"""The start of the file names of nested assets."""

SCHEMA_SUFFIXES: Final = (".schema.json", ".json")
"""The suffixes of schema files, the stronger first."""


def resolve_alias(name: str) -> str:
    """Return the schema behind a name."""
    return SCHEMA_ALIASES.get(name, name)


def parse_file_name(name: str) -> str | None:
    """Return the name of the schema that a file holds, or None if it holds none."""
    for suffix in SCHEMA_SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix)
    return None


def read_marker(asset: object) -> str | None:
    """Return the schema that an asset itself names, or None.

    `schema` is a name, a marker is a path or a URL of which the last part counts. A `$schema` that
    is not a file is the URL of a dialect, which is ignored here.
    """
    if not isinstance(asset, Mapping):
        return None
    name = asset.get("schema")
    if isinstance(name, str) and name.strip():
        return _reference_name(name)
    for marker in SCHEMA_MARKERS:
        value = asset.get(marker)
        if isinstance(value, str) and (marker == "$schemaRef" or value.endswith(".json")):
            return _reference_name(value)
    return None


def infer_schema(asset: object, path: str, schema_names: Container[str]) -> str:
    """Return the schema of a file: by its marker, else by its name, or by its folder."""
    posix_path = PurePosixPath(path)
    if (marker := read_marker(asset)) is not None:
        return marker
    if posix_path.name.startswith(NESTED_FILE_PREFIX):
        return NESTED_SCHEMA
    stem = get_stem(path)
    return posix_path.parent.name if stem not in schema_names and posix_path.parent.name in schema_names else stem


def infer_asset_schema(asset: object, path: str, schema_names: Container[str]) -> str:
    """Return the schema of a file that is certainly an asset: a nested one by default."""
    name = infer_schema(asset, path, schema_names)
    is_unknown = read_marker(asset) is None and resolve_alias(name) not in schema_names
    return NESTED_SCHEMA if is_unknown and FALLBACK_SCHEMA in schema_names else name


def get_stem(path: str) -> str:
    """Return the name of a file up to its first dot."""
    return PurePosixPath(path).name.partition(".")[0]


def is_plain_name(name: str) -> bool:
    """Return whether a text can be the name of a schema and is not an attempt to be a path."""
    parts = name.replace("\\", "/").split("/")
    return bool(name) and len(parts) == 1 and ".." not in parts and "\0" not in name


def strip_markers(asset: Any, markers: tuple[str, ...]) -> Any:
    """Return the asset itself if it carries no marker; otherwise a copy without them."""
    if isinstance(asset, dict) and any(marker in asset for marker in markers):
        return {key: value for key, value in asset.items() if key not in markers}
    return asset


def _reference_name(reference: str) -> str:
    last = reference.strip().partition("#")[0].replace("\\", "/").rstrip("/").rpartition("/")[2]
    return parse_file_name(last) or last
