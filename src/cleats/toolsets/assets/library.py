"""A snapshot of schemas and examples from the start of the server.

Files are read once, here; afterwards no argument of a caller leads to the disk. A file outside its
root, reached by a symlink, is not read at all.
"""

import logging
import os
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from cleats.toolsets.assets import schema_names
from cleats.toolsets.assets.sources import AssetRoot, AssetSources

log = logging.getLogger(__name__)

_SCHEMA_KEYWORDS = frozenset(
    ("$schema", "$id", "$defs", "$ref", "properties", "items", "allOf", "anyOf", "oneOf", "enum")
)
_SCHEMA_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
"""A plain `.json` file in the folder is a schema if it has one of these keywords or types at its
top level."""

_decode = msgspec.json.Decoder().decode


class UnusableFileError(Exception):
    """A file that cannot be served. The text is the reason token in the answer."""


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """One schema; its document is the unchanged content of the file."""

    name: str
    version: str
    path: str
    uri: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AssetExample:
    """One example. Stored as the bytes of its file, which are a fraction of the objects."""

    path: str
    schema: str
    content: bytes

    def parse(self) -> Any:
        return _decode(self.content)


@dataclass(frozen=True, slots=True)
class AssetLibrary:
    """All schemas and examples, by name or by path relative to the root."""

    schemas: Mapping[str, SchemaFile]
    examples: Mapping[str, AssetExample]
    unusable: Mapping[str, str]
    """Paths below the examples that exist but cannot be served, and the reasons."""
    root: AssetRoot | None = None

    def find_example(self, path: str) -> AssetExample | None:
        """Return the example with a listed, relative or absolute path, or None.

        Raises:
            UnusableFileError: The path leads out of the root, or to something that is not an
                example.
        """
        relative_path = self._make_relative(path)
        if relative_path in self.unusable:
            raise UnusableFileError(self.unusable[relative_path])
        return self.examples.get(relative_path)

    def _make_relative(self, path: str) -> str:
        text = path.replace("\\", "/") if os.sep == "\\" else path
        if not text or "\0" in text:
            raise UnusableFileError("invalid_path")
        if self.root is None:
            is_outside = text.startswith("/") or ".." in text.split("/")
            if is_outside:
                raise UnusableFileError("invalid_path")
            return text
        for base in (self.root.display_path, self.root.folder.as_posix()):
            if text.startswith(base + "/"):
                text = text.removeprefix(base + "/")
                break
        return _normalize_path(text)


def read_library(sources: AssetSources) -> AssetLibrary:
    """Read both roots."""
    schemas = dict(_read_schemas(sources.schemas)) if sources.schemas else {}
    examples: dict[str, AssetExample] = {}
    unusable: dict[str, str] = {}
    if sources.examples:
        for relative_path, file in _walk_json_files(sources.examples.folder, unusable):
            try:
                examples[relative_path] = _read_example(sources.examples, relative_path, file, schemas)
            except UnusableFileError as error:
                unusable[relative_path] = str(error)
                log.warning("assets.skipped path=%s reason=%s", sources.examples.format_path(relative_path), error)
    return AssetLibrary(schemas, examples, unusable, sources.examples)


def iter_documents(root: AssetRoot) -> Iterator[tuple[str, Any]]:
    """Yield every JSON document below the schema folder with its file URI, as targets of `$ref`."""
    for _, file in _walk_json_files(root.folder, {}):
        try:
            yield file.as_uri(), _parse_json(_read_content(file, root.folder))
        except UnusableFileError:
            continue


def _read_schemas(root: AssetRoot) -> Iterator[tuple[str, SchemaFile]]:
    schemas: dict[str, SchemaFile] = {}
    files = sorted((candidate for candidate in root.folder.glob("*.json") if candidate.is_file()), key=_schema_sort_key)
    for file in files:
        name = schema_names.parse_file_name(file.name)
        if name is None or name in schemas:
            continue
        try:
            document = _parse_json(_read_content(file, root.folder))
        except UnusableFileError as error:
            log.warning("assets.skipped path=%s reason=%s", root.format_path(file.name), error)
            continue
        if _is_schema(file.name, document):
            schemas[name] = SchemaFile(
                name, _read_version(document), root.format_path(file.name), file.as_uri(), document
            )
    yield from sorted(schemas.items())


def _schema_sort_key(file: Path) -> tuple[bool, str]:
    return not file.name.endswith(schema_names.SCHEMA_SUFFIXES[0]), file.name


def _is_schema(name: str, document: object) -> bool:
    if not isinstance(document, dict):
        return False
    has_schema_suffix = name.endswith(schema_names.SCHEMA_SUFFIXES[0])
    return has_schema_suffix or not _SCHEMA_KEYWORDS.isdisjoint(document) or document.get("type") in _SCHEMA_TYPES


def _read_version(document: Mapping[str, Any]) -> str:
    for key in ("version", "x-schema-version"):
        if isinstance(value := document.get(key), str | int | float):
            return str(value)
    return ""


def _walk_json_files(folder: Path, other_paths: dict[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield every `.json` file below a folder; record folders in `other_paths`."""
    for current, folders, files in os.walk(folder):
        current_folder = Path(current)
        folders.sort()
        for name in folders:
            relative_path = (current_folder / name).relative_to(folder).as_posix()
            other_paths[relative_path] = "invalid_path" if (current_folder / name).is_symlink() else "not_a_file"
        for name in sorted(files):
            if name.endswith(".json"):
                yield (current_folder / name).relative_to(folder).as_posix(), current_folder / name


def _read_example(root: AssetRoot, relative_path: str, file: Path, known_names: Container[str]) -> AssetExample:
    content = _read_content(file, root.folder)
    return AssetExample(
        root.format_path(relative_path),
        schema_names.infer_asset_schema(_parse_json(content), relative_path, known_names),
        content,
    )


def _read_content(file: Path, folder: Path) -> bytes:
    try:
        str(file).encode()
        real = file.resolve(strict=True)
        if not real.is_relative_to(folder):
            raise UnusableFileError("invalid_path")
        if not real.is_file():  # a pipe would never end
            raise UnusableFileError("not_a_file")
        return real.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except UnicodeEncodeError:  # a path is part of answers, which are UTF-8
        raise UnusableFileError("name_not_utf8") from None
    except (OSError, RuntimeError):  # RuntimeError: a symlink to itself, before Python 3.13
        raise UnusableFileError("unreadable") from None


def _parse_json(content: bytes) -> Any:
    try:
        return _decode(content)
    except (ValueError, RecursionError):
        raise UnusableFileError("not_json") from None


def _normalize_path(path: str) -> str:
    """Return a relative path without `.` and `..`, which must stay inside."""
    parts: list[str] = []
    if PurePosixPath(path).is_absolute() or Path(path).is_absolute():
        raise UnusableFileError("invalid_path")
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise UnusableFileError("invalid_path")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
