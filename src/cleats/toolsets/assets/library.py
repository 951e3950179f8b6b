"""Schemas and examples as they were when the server started.

Files are read once, here; after that nothing a caller says leads to the disk. A file that a
symlink brings in from outside its root is not read at all.
"""

import logging
import os
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from cleats.toolsets.assets import naming
from cleats.toolsets.assets.sources import Root, Sources

log = logging.getLogger(__name__)

_SCHEMA_WORDS = frozenset(
    ("$schema", "$id", "$defs", "$ref", "properties", "items", "allOf", "anyOf", "oneOf", "enum")
)
_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
"""A plain `.json` file in the folder is a schema when one of these words or types is at its top."""

_decode = msgspec.json.Decoder().decode


class Unusable(Exception):  # noqa: N818 - a state of a file
    """A file that cannot be served. The text is the token that a caller gets."""


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """One schema: its document is what is in the file, never changed."""

    name: str
    version: str
    path: str
    uri: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """One example. Kept as the bytes of its file, which are a fraction of the objects."""

    path: str
    schema: str
    content: bytes

    def parsed(self) -> Any:
        return _decode(self.content)


@dataclass(frozen=True, slots=True)
class Library:
    """Everything that is served, by the name or the path inside the root."""

    schemas: Mapping[str, SchemaFile]
    examples: Mapping[str, Example]
    unusable: Mapping[str, str]
    """Paths below the examples that are there and cannot be had, and why."""
    root: Root | None = None

    def example(self, path: str) -> Example | None:
        """The example with a path as it is listed, inside the root, or absolute; None for none.

        Raises:
            Unusable: the path leads out of the root, or to something that is no example.
        """
        inside = self._inside(path)
        if inside in self.unusable:
            raise Unusable(self.unusable[inside])
        return self.examples.get(inside)

    def _inside(self, path: str) -> str:
        text = path.replace("\\", "/") if os.sep == "\\" else path
        if not text or "\0" in text:
            raise Unusable("invalid_path")
        if self.root is None:
            outside = text.startswith("/") or ".." in text.split("/")
            if outside:
                raise Unusable("invalid_path")
            return text
        for base in (self.root.shown, self.root.folder.as_posix()):
            if text.startswith(base + "/"):
                text = text.removeprefix(base + "/")
                break
        return _normal(text)


def read(sources: Sources) -> Library:
    """Read both roots."""
    schemas = dict(_schemas(sources.schemas)) if sources.schemas else {}
    examples: dict[str, Example] = {}
    unusable: dict[str, str] = {}
    if sources.examples:
        for inside, file in _walk(sources.examples.folder, unusable):
            try:
                examples[inside] = _example(sources.examples, inside, file, schemas)
            except Unusable as error:
                unusable[inside] = str(error)
                log.warning(
                    "assets.skipped path=%s reason=%s", sources.examples.path(inside), error
                )
    return Library(schemas, examples, unusable, sources.examples)


def documents(root: Root) -> Iterator[tuple[str, Any]]:
    """Every JSON document below the schema folder with its file URI, for `$ref` to find."""
    for _, file in _walk(root.folder, {}):
        try:
            yield file.as_uri(), _parsed(_content(file, root.folder))
        except Unusable:
            continue


def _schemas(root: Root) -> Iterator[tuple[str, SchemaFile]]:
    found: dict[str, SchemaFile] = {}
    files = sorted((each for each in root.folder.glob("*.json") if each.is_file()), key=_strength)
    for file in files:
        name = naming.file_name(file.name)
        if name is None or name in found:
            continue
        try:
            document = _parsed(_content(file, root.folder))
        except Unusable as error:
            log.warning("assets.skipped path=%s reason=%s", root.path(file.name), error)
            continue
        if _is_schema(file.name, document):
            found[name] = SchemaFile(
                name, _version(document), root.path(file.name), file.as_uri(), document
            )
    yield from sorted(found.items())


def _strength(file: Path) -> tuple[bool, str]:
    return not file.name.endswith(naming.SUFFIXES[0]), file.name


def _is_schema(name: str, document: object) -> bool:
    if not isinstance(document, dict):
        return False
    named = name.endswith(naming.SUFFIXES[0])
    return named or not _SCHEMA_WORDS.isdisjoint(document) or document.get("type") in _TYPES


def _version(document: Mapping[str, Any]) -> str:
    for key in ("version", "x-schema-version"):
        if isinstance(value := document.get(key), str | int | float):
            return str(value)
    return ""


def _walk(folder: Path, seen: dict[str, str]) -> Iterator[tuple[str, Path]]:
    """Every `.json` file below a folder; what else is there is noted in `seen`."""
    for here, folders, files in os.walk(folder):
        at = Path(here)
        folders.sort()
        for name in folders:
            inside = (at / name).relative_to(folder).as_posix()
            seen[inside] = "invalid_path" if (at / name).is_symlink() else "not_a_file"
        for name in sorted(files):
            if name.endswith(".json"):
                yield (at / name).relative_to(folder).as_posix(), at / name


def _example(root: Root, inside: str, file: Path, known: Container[str]) -> Example:
    content = _content(file, root.folder)
    return Example(root.path(inside), naming.assumed(_parsed(content), inside, known), content)


def _content(file: Path, folder: Path) -> bytes:
    try:
        str(file).encode()
        real = file.resolve(strict=True)
        if not real.is_relative_to(folder):
            raise Unusable("invalid_path")
        if not real.is_file():  # a pipe would never end
            raise Unusable("not_a_file")
        return real.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except UnicodeEncodeError:  # a path is part of answers, which are UTF-8
        raise Unusable("name_not_utf8") from None
    except (OSError, RuntimeError):  # RuntimeError: a symlink to itself, before Python 3.13
        raise Unusable("unreadable") from None


def _parsed(content: bytes) -> Any:
    try:
        return _decode(content)
    except (ValueError, RecursionError):
        raise Unusable("not_json") from None


def _normal(path: str) -> str:
    """A relative path without `.` and `..`, which must stay inside."""
    parts: list[str] = []
    if PurePosixPath(path).is_absolute() or Path(path).is_absolute():
        raise Unusable("invalid_path")
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise Unusable("invalid_path")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
