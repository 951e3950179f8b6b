"""References between schemas, resolved once, offline.

A schema is known by the URI of its file and by its `$id`. A reference is resolved by the rules of
JSON Schema first; if that fails, it may still name a file in the same folder. Linked copies carry
absolute references only, because the validator confuses the two names of a document when it follows
one and finds relative references behind it. The documents themselves stay unchanged.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

DIALECT_URI_PREFIX: Final = "https://json-schema.org/draft/"
"""The documents of JSON Schema itself, which the validator includes."""

OLDER_DIALECTS: Final = frozenset(
    [f"{DIALECT_URI_PREFIX}2019-09/schema"]
    + [f"http://json-schema.org/draft-{version}/schema" for version in ("07", "06", "04")]
)
"""Dialects older than the one that everything is read as."""

_KNOWN_DIALECTS: Final = OLDER_DIALECTS | {f"{DIALECT_URI_PREFIX}2020-12/schema"}

_REFERENCE_KEYWORDS: Final = ("$ref", "$dynamicRef")
_SCHEMA_MAP_KEYWORDS: Final = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_DATA_KEYWORDS: Final = frozenset(("const", "enum", "default", "examples"))
"""Keywords whose values are not schemas, whatever they look like."""


@dataclass(slots=True)
class LinkedSchema:
    """One document with its references made absolute."""

    uri: str
    document: Any
    targets: set[str] = field(default_factory=set)
    """The documents that it refers to."""
    failure: str | None = None
    """The reason why it cannot be used, such as an unresolved reference."""


def link_documents(documents: Iterable[tuple[str, Any]]) -> dict[str, LinkedSchema]:
    """Link documents, each given with the URI of its file, which is also its key in the result.

    The first of two documents with the same `$id` keeps it. A document that refers to an unusable
    one is unusable too.
    """
    documents_by_file = dict(documents)
    index: dict[str, tuple[str, str]] = {}  # from any URI to its file and its true URI
    for file, document in documents_by_file.items():
        with suppress(RecursionError):  # it is handled below
            for uri in _iter_identities(document, file):
                index.setdefault(uri, (file, uri))
        own_uri = _document_uri(document, file)
        index[file] = (file, own_uri if index.get(own_uri, (file,))[0] == file else file)
    linked = {file: _link_document(document, file, index) for file, document in documents_by_file.items()}
    propagate_failures(linked)
    return linked


def _link_document(document: Any, file: str, index: Mapping[str, tuple[str, str]]) -> LinkedSchema:
    try:
        return _SchemaLinker(document, file, index).linked
    except RecursionError:
        return LinkedSchema(file, None, failure="it is nested too deeply")


def propagate_failures(linked: Mapping[str, LinkedSchema]) -> None:
    """Mark the documents that refer, directly or indirectly, to an unusable one."""
    changed = True
    while changed:
        changed = False
        for schema in linked.values():
            if schema.failure is None:
                schema.failure = next((linked[file].failure for file in schema.targets if linked[file].failure), None)
                changed |= schema.failure is not None


class _SchemaLinker:
    """A copy of one document with its references made absolute."""

    def __init__(self, document: Any, file: str, index: Mapping[str, tuple[str, str]]) -> None:
        self.file = file
        self.index = index
        self.linked = LinkedSchema(index[file][1], None)
        self.linked.document = self.link_schema(document, file)
        if self.linked.uri == file and isinstance(document, dict):
            self.linked.document.pop("$id", None)  # another document has it, or it is invalid

    def link_schema(self, schema: Any, base: str) -> Any:
        if isinstance(schema, list):
            return [self.link_schema(item, base) for item in schema]
        if not isinstance(schema, dict):
            return schema
        base = _resolve_id(schema, base)
        fields = drop_unknown_dialect(schema)
        return {key: self.link_keyword(key, value, base) for key, value in fields.items()}

    def link_keyword(self, key: str, value: Any, base: str) -> Any:
        if key in _DATA_KEYWORDS:
            return value
        if key in _SCHEMA_MAP_KEYWORDS and isinstance(value, dict):
            return {name: self.link_schema(subschema, base) for name, subschema in value.items()}
        if key in _REFERENCE_KEYWORDS and isinstance(value, str) and not value.startswith("#"):
            return self.link_reference(value, base)
        return self.link_schema(value, base)

    def link_reference(self, reference: str, base: str) -> str:
        for start in (base, self.file):
            try:
                uri, fragment = urldefrag(urljoin(start, reference))
            except ValueError:
                break  # not a URI, whatever it is joined to
            if uri in self.index:
                target, true_uri = self.index[uri]
                self.linked.targets.add(target)
                return f"{true_uri}#{fragment}" if fragment else true_uri
            if uri.startswith(DIALECT_URI_PREFIX):
                return reference
        self.linked.failure = f"there is no {reference!r}"
        return reference


def drop_unknown_dialect(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without a `$schema` that the validator does not know.

    Everything is read as draft 2020-12, and one word of one file must not prevent the validator
    from reading all the others.
    """
    dialect = schema.get("$schema")
    if isinstance(dialect, str) and dialect.removesuffix("#") not in _KNOWN_DIALECTS:
        return {key: value for key, value in schema.items() if key != "$schema"}
    return dict(schema)


def _iter_identities(schema: Any, base: str) -> Iterator[str]:
    """Yield the URIs that a document and its parts declare."""
    if isinstance(schema, list):
        for item in schema:
            yield from _iter_identities(item, base)
    elif isinstance(schema, dict):
        own_uri = _resolve_id(schema, base)
        if own_uri != base:
            yield own_uri
        for key, value in schema.items():
            if key in _SCHEMA_MAP_KEYWORDS and isinstance(value, dict):
                yield from _iter_identities(list(value.values()), own_uri)
            elif key not in _DATA_KEYWORDS:
                yield from _iter_identities(value, own_uri)


def _document_uri(document: Any, file: str) -> str:
    return _resolve_id(document, file) if isinstance(document, dict) else file


def _resolve_id(schema: Mapping[str, Any], base: str) -> str:
    identity = schema.get("$id")
    if not isinstance(identity, str):
        return base
    try:
        return urldefrag(urljoin(base, identity)).url
    except ValueError:  # not a URI; the validator reports it when it compiles the schema
        return base
