"""References between schemas, resolved once, offline.

A schema is known by the URI of its file and by its `$id`, which is called `id` in draft-04. A reference is resolved by
the rules of JSON Schema first; if that fails, it may still name a file in the same folder. Linked copies carry absolute
references only, because the validator confuses the two names of a document when it follows one and finds relative
references behind it. The documents themselves stay unchanged.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

from cleats.contract.violations import DIALECT_URIS, DRAFT_4_URI, read_dialect

DIALECT_URI_PREFIXES: Final = ("https://json-schema.org/draft/", "http://json-schema.org/draft-")
"""The beginnings of the documents of JSON Schema itself, which the validator includes."""

_LONE_REFERENCE_DIALECTS: Final = frozenset(
    f"http://json-schema.org/draft-{number}/schema" for number in ("04", "06", "07")
)
"""Drafts in which everything beside a `$ref` is ignored, `$id` too."""

_REFERENCE_KEYWORDS: Final = ("$ref", "$dynamicRef")
_SCHEMA_MAP_KEYWORDS: Final = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
)
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

    The first of two documents with the same `$id` keeps it. A document that refers to an unusable one is unusable too.
    """
    documents_by_file = dict(documents)
    index: dict[str, tuple[str, str]] = {}  # from any URI to its file and its true URI
    for file, document in documents_by_file.items():
        with suppress(RecursionError):  # it is handled below
            for _, uri in _iter_schemas(document, file, read_dialect(document)):
                index.setdefault(uri, (file, uri))
        own_uri = _resolve_id(document, file, read_dialect(document)) if isinstance(document, dict) else file
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
        dialect = read_dialect(document)
        self.linked.document = self.link_schema(document, file, dialect)
        if self.linked.uri == file and isinstance(document, dict):
            self.linked.document.pop(_get_id_keyword(dialect), None)  # another document has it, or it is invalid

    def link_schema(self, schema: Any, base: str, dialect: str) -> Any:
        if isinstance(schema, list):
            return [self.link_schema(item, base, dialect) for item in schema]
        if not isinstance(schema, dict):
            return schema
        dialect = _resolve_dialect(schema, dialect)
        base = _resolve_id(schema, base, dialect)
        fields = drop_unknown_dialect(schema)
        return {key: self.link_keyword(key, value, base, dialect) for key, value in fields.items()}

    def link_keyword(self, key: str, value: Any, base: str, dialect: str) -> Any:
        if key in _DATA_KEYWORDS:
            return value
        if key in _SCHEMA_MAP_KEYWORDS and isinstance(value, dict):
            return {name: self.link_schema(subschema, base, dialect) for name, subschema in value.items()}
        if key in _REFERENCE_KEYWORDS and isinstance(value, str) and not value.startswith("#"):
            return self.link_reference(value, base)
        return self.link_schema(value, base, dialect)

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
            if uri.startswith(DIALECT_URI_PREFIXES):
                return reference
        self.linked.failure = f"{reference!r} does not exist"
        return reference


def drop_unknown_dialect(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without a `$schema` that the validator does not know.

    Such a schema is read as draft 2020-12, and one word of one file must not prevent the validator
    from reading all the others.
    """
    dialect = schema.get("$schema")
    if isinstance(dialect, str) and dialect.removesuffix("#") not in DIALECT_URIS:
        return {key: value for key, value in schema.items() if key != "$schema"}
    return dict(schema)


def _iter_schemas(schema: Any, base: str, dialect: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield a schema and all schemas in it, each with its URI."""
    if isinstance(schema, list):
        for item in schema:
            yield from _iter_schemas(item, base, dialect)
    elif isinstance(schema, dict):
        dialect = _resolve_dialect(schema, dialect)
        base = _resolve_id(schema, base, dialect)
        yield schema, base
        for key, value in schema.items():
            if key not in _DATA_KEYWORDS:
                is_map = key in _SCHEMA_MAP_KEYWORDS and isinstance(value, dict)
                yield from _iter_schemas(list(value.values()) if is_map else value, base, dialect)


def iter_reference_uris(document: Any, file: str) -> Iterator[str]:
    """Yield the URIs of the documents that a document in a file may refer to, as far as the file tells."""
    for schema, _ in _iter_schemas(document, file, read_dialect(document)):
        for key in _REFERENCE_KEYWORDS:
            if isinstance(reference := schema.get(key), str):
                with suppress(ValueError):  # not a URI, which linking reports
                    yield urldefrag(urljoin(file, reference)).url


def _resolve_dialect(schema: Mapping[str, Any], dialect: str) -> str:
    """Return the draft of a part of a document, which may declare another one than the document."""
    return read_dialect(schema) if "$schema" in schema else dialect


def _get_id_keyword(dialect: str) -> str:
    return "id" if dialect == DRAFT_4_URI else "$id"


def _resolve_id(schema: Mapping[str, Any], base: str, dialect: str) -> str:
    identity = schema.get(_get_id_keyword(dialect))
    is_ignored = dialect in _LONE_REFERENCE_DIALECTS and isinstance(schema.get("$ref"), str)
    if is_ignored or not isinstance(identity, str):
        return base
    try:
        return urldefrag(urljoin(base, identity)).url
    except ValueError:  # not a URI; the validator reports it when it compiles the schema
        return base
