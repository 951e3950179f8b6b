"""References between schemas, resolved once, offline.

A schema is known by the URI of its file and by its `$id`. A reference is looked up by the rules
of JSON Schema first; one that leads nowhere by `$id` may still name the file beside it. Linked
copies carry absolute references only, because the validator mixes the two names of a document up
when it follows one and finds relative references behind it. The documents themselves stay as
they are.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

DIALECTS: Final = "https://json-schema.org/draft/"
"""The documents of JSON Schema itself, which the validator brings along."""

OLDER: Final = frozenset(
    [f"{DIALECTS}2019-09/schema"]
    + [f"http://json-schema.org/draft-{version}/schema" for version in ("07", "06", "04")]
)
"""Dialects before the one that everything is read as."""

_KNOWN: Final = OLDER | {f"{DIALECTS}2020-12/schema"}

_REFERENCES: Final = ("$ref", "$dynamicRef")
_MAPS: Final = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
)
_DATA: Final = frozenset(("const", "enum", "default", "examples"))
"""Keywords whose values are no schemas, whatever they look like."""


@dataclass(slots=True)
class Linked:
    """One document with its references made absolute."""

    uri: str
    document: Any
    targets: set[str] = field(default_factory=set)
    """The documents it refers to."""
    missing: str | None = None
    """Why it cannot be used: a reference that leads nowhere, say."""


def link(documents: Iterable[tuple[str, Any]]) -> dict[str, Linked]:
    """Link documents, each given with the URI of its file, which is also its key in the answer.

    Of two documents with one `$id` the first has it. A document that refers to one which cannot
    be used cannot be used either.
    """
    given = dict(documents)
    index: dict[str, tuple[str, str]] = {}  # any URI to the file it is in and its true URI
    for file, document in given.items():
        with suppress(RecursionError):  # it is met again below
            for uri in _identities(document, file):
                index.setdefault(uri, (file, uri))
        own = _canonical(document, file)
        index[file] = (file, own if index.get(own, (file,))[0] == file else file)
    linked = {file: _linked(document, file, index) for file, document in given.items()}
    spread(linked)
    return linked


def _linked(document: Any, file: str, index: Mapping[str, tuple[str, str]]) -> Linked:
    try:
        return _Copy(document, file, index).made
    except RecursionError:
        return Linked(file, None, missing="it is nested too deeply")


def spread(linked: Mapping[str, Linked]) -> None:
    """Mark what refers, however indirectly, to a document that cannot be used."""
    spreading = True
    while spreading:
        spreading = False
        for each in linked.values():
            if each.missing is None:
                each.missing = next(
                    (linked[file].missing for file in each.targets if linked[file].missing), None
                )
                spreading |= each.missing is not None


class _Copy:
    """One document being copied with its references made absolute."""

    def __init__(self, document: Any, file: str, index: Mapping[str, tuple[str, str]]) -> None:
        self.file = file
        self.index = index
        self.made = Linked(index[file][1], None)
        self.made.document = self.schema(document, file)
        if self.made.uri == file and isinstance(document, dict):
            self.made.document.pop("$id", None)  # another document has it, or it is none

    def schema(self, schema: Any, base: str) -> Any:
        if isinstance(schema, list):
            return [self.schema(each, base) for each in schema]
        if not isinstance(schema, dict):
            return schema
        base = _own(schema, base)
        known = without_dialect(schema)
        return {key: self.keyword(key, value, base) for key, value in known.items()}

    def keyword(self, key: str, value: Any, base: str) -> Any:
        if key in _DATA:
            return value
        if key in _MAPS and isinstance(value, dict):
            return {name: self.schema(each, base) for name, each in value.items()}
        if key in _REFERENCES and isinstance(value, str) and not value.startswith("#"):
            return self.reference(value, base)
        return self.schema(value, base)

    def reference(self, reference: str, base: str) -> str:
        for start in (base, self.file):
            try:
                uri, fragment = urldefrag(urljoin(start, reference))
            except ValueError:
                break  # no URI, whatever it is joined to
            if uri in self.index:
                target, true = self.index[uri]
                self.made.targets.add(target)
                return f"{true}#{fragment}" if fragment else true
            if uri.startswith(DIALECTS):
                return reference
        self.made.missing = f"there is no {reference!r}"
        return reference


def without_dialect(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema whose `$schema`, if any, is a dialect that the validator knows.

    Everything is held to be draft 2020-12, and one word of one file must not keep the validator
    from reading all the others.
    """
    dialect = schema.get("$schema")
    if isinstance(dialect, str) and dialect.removesuffix("#") not in _KNOWN:
        return {key: value for key, value in schema.items() if key != "$schema"}
    return dict(schema)


def _identities(schema: Any, base: str) -> Iterator[str]:
    """The URIs that a document and its parts give themselves."""
    if isinstance(schema, list):
        for each in schema:
            yield from _identities(each, base)
    elif isinstance(schema, dict):
        own = _own(schema, base)
        if own != base:
            yield own
        for key, value in schema.items():
            if key in _MAPS and isinstance(value, dict):
                yield from _identities(list(value.values()), own)
            elif key not in _DATA:
                yield from _identities(value, own)


def _canonical(document: Any, file: str) -> str:
    return _own(document, file) if isinstance(document, dict) else file


def _own(schema: Mapping[str, Any], base: str) -> str:
    identity = schema.get("$id")
    if not isinstance(identity, str):
        return base
    try:
        return urldefrag(urljoin(base, identity)).url
    except ValueError:  # no URI; the validator says so when it compiles the schema
        return base
