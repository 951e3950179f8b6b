"""A snapshot of schemas and examples from the start of the server.

Files are read once, here; afterwards no argument of a caller leads to the disk. A file outside its
root, reached by a symlink, is not read at all.
"""

import logging
import os
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from cleats.toolsets.assets import schema_names
from cleats.toolsets.assets.references import iter_reference_uris
from cleats.toolsets.assets.sources import AssetRoot, AssetSources

log = logging.getLogger(__name__)

_SCHEMA_KEYWORDS = frozenset(
    ("$schema", "$id", "$defs", "$ref", "properties", "items", "allOf", "anyOf", "oneOf", "enum")
)
_SCHEMA_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
"""A plain `.json` file in the folder is a schema if it has one of these keywords or types at its top level."""

_decode = msgspec.json.Decoder().decode


class UnusableFileError(Exception):
    """A file that cannot be served. The text is the reason."""


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
    root: AssetRoot | None = None
    """The folder of the examples."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """The files that are left out, with a code for the reason."""

    def find_example(self, path: str) -> AssetExample | None:
        """Return the example with a listed, relative or absolute path; None for any other text."""
        if self.root is None:
            return None
        text = path.replace("\\", "/") if os.sep == "\\" else path
        for base in (self.root.display_path, self.root.folder.as_posix()):
            if text.startswith(base + "/"):
                text = text.removeprefix(base + "/")
                break
        # Only the names of examples are looked up, so a path that leads elsewhere finds nothing.
        return self.examples.get(posixpath.normpath(text))


def read_library(sources: AssetSources) -> AssetLibrary:
    """Read both roots; every file that is left out is logged with its reason."""
    skipped: dict[str, str] = {}
    schemas = _read_schemas(sources.schemas, skipped) if sources.schemas else {}
    examples: dict[str, AssetExample] = {}
    if sources.examples:
        for relative_path, file in _walk_json_files(sources.examples.folder):
            try:
                content = _read_content(file, sources.examples.folder)
                schema = schema_names.infer_asset_schema(_parse_object(content), relative_path, schemas)
                path = sources.examples.format_path(relative_path)
                examples[relative_path] = AssetExample(path, schema, content)
            except UnusableFileError as error:
                skipped[sources.examples.format_path(relative_path)] = str(error)
    for path, reason in skipped.items():
        log.warning("assets.skipped path=%s reason=%s", path, reason)
    return AssetLibrary(schemas, examples, sources.examples, skipped)


def read_schema_tree(file: Path) -> tuple[dict[str, SchemaFile], dict[str, Any]]:
    """Read one schema and the documents in its folder, or below it, that it refers to, and nothing else.

    Return the schema by its name, and all documents by the URIs of their files.

    Raises:
        UnusableFileError: The file cannot be read, or does not hold a JSON object.
    """
    root = AssetRoot(file.parent.as_posix(), file.parent.resolve())
    main_file = root.folder / file.name
    document = _parse_object(_read_content(main_file, root.folder))
    name = schema_names.parse_file_name(file.name) or file.name
    schema = SchemaFile(name, _read_version(document), root.format_path(file.name), main_file.as_uri(), document)
    documents: dict[str, Any] = {schema.uri: document}
    pending_uris = _list_references(document, schema.uri)
    while pending_uris:
        for candidate in _list_candidates(pending_uris.pop(), root.folder):
            if candidate.as_uri() in documents:
                continue
            with suppress(UnusableFileError):
                documents[candidate.as_uri()] = _parse_json(_read_content(candidate, root.folder))
                pending_uris += _list_references(documents[candidate.as_uri()], candidate.as_uri())
    return {name: schema}, documents


def _list_references(document: Any, uri: str) -> list[str]:
    try:
        return list(iter_reference_uris(document, uri))
    except RecursionError:  # linking reports that it is nested too deeply
        return []


def _list_candidates(uri: str, folder: Path) -> list[Path]:
    """Return the files that a reference can mean: one that it leads to, or one with that name and its own `$id`."""
    parts = urlsplit(uri)
    path = PurePosixPath(unquote(parts.path))
    return [Path(path)] if parts.scheme == "file" else [folder / path.name] if path.name else []


def iter_documents(root: AssetRoot) -> Iterator[tuple[str, Any]]:
    """Yield every JSON document below the schema folder with its file URI, as targets of `$ref`."""
    for _, file in _walk_json_files(root.folder):
        try:
            yield file.as_uri(), _parse_json(_read_content(file, root.folder))
        except UnusableFileError:
            continue


def _read_schemas(root: AssetRoot, skipped: dict[str, str]) -> dict[str, SchemaFile]:
    """Return the schemas by name; add what looks like a schema and is not served to `skipped`."""
    schemas: dict[str, SchemaFile] = {}
    files = [candidate for candidate in root.folder.glob("*.json") if candidate.is_file()]
    for file in sorted(files, key=lambda file: (not file.name.endswith(schema_names.SCHEMA_SUFFIXES[0]), file.name)):
        name = schema_names.parse_file_name(file.name)
        if name is None:
            continue
        path = root.format_path(file.name)
        try:
            document = _parse_json(_read_content(file, root.folder))
        except UnusableFileError as error:
            skipped[path] = str(error)
            continue
        if not _is_schema(file.name, document):
            continue
        if not isinstance(document, dict):
            skipped[path] = "not_an_object"
        elif name in schemas:
            skipped[path] = f"name_taken_by {schemas[name].path}"
        else:
            schemas[name] = SchemaFile(name, _read_version(document), path, file.as_uri(), document)
    return dict(sorted(schemas.items()))


def _is_schema(name: str, document: object) -> bool:
    """Return whether a file is meant as a schema; a plain `.json` file may be anything."""
    if name.endswith(schema_names.SCHEMA_SUFFIXES[0]) or isinstance(document, bool):
        return True
    if not isinstance(document, dict):
        return False
    return not _SCHEMA_KEYWORDS.isdisjoint(document) or document.get("type") in _SCHEMA_TYPES


def _read_version(document: Mapping[str, Any]) -> str:
    for key in ("version", "x-schema-version"):
        if isinstance(value := document.get(key), str | int | float):
            return str(value)
    return ""


def _walk_json_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield every `.json` file below a folder."""
    for current, folders, files in os.walk(folder):
        current_folder = Path(current)
        folders.sort()
        for name in sorted(files):
            if name.endswith(".json"):
                yield (current_folder / name).relative_to(folder).as_posix(), current_folder / name


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


def _parse_object(content: bytes) -> dict[str, Any]:
    document = _parse_json(content)
    if not isinstance(document, dict):
        raise UnusableFileError("not_an_object")
    return document
