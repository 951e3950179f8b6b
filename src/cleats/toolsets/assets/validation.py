"""Assets against schemas: compiled once at start, offline, safe to share between threads."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema_rs

from cleats.contract.violations import Validator
from cleats.toolsets.assets import naming
from cleats.toolsets.assets.library import SchemaFile, documents
from cleats.toolsets.assets.linking import Linked, link
from cleats.toolsets.assets.sources import Root

log = logging.getLogger(__name__)


def failed(*errors: tuple[str, str]) -> dict[str, Any]:
    """The payload of something that did not validate, its errors in their fixed order."""
    return {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": path, "msg": message} for path, message in sorted(set(errors))],
    }


class Judge:
    """Knows every schema and says whether an asset fits one of them."""

    def __init__(self, schemas: Mapping[str, SchemaFile], root: Root | None) -> None:
        self._known = frozenset(schemas)
        self._validators: dict[str, tuple[Validator, tuple[str, ...]]] = {}
        self.broken: dict[str, str] = {}
        """Schemas that cannot be used, and why: for logs and people, never for answers."""
        linked = link((file.uri, file.document) for file in schemas.values())
        if root and any(each.missing for each in linked.values()):
            # A reference leads to a file in a folder below. Those are only read when needed,
            # because a folder of schemas may stand at the top of a large tree.
            named = {file.uri: file.document for file in schemas.values()}
            linked = link({**named, **dict(documents(root)), **named}.items())
        registry = _registry(linked.values())
        for file in schemas.values():
            self._add(file, linked[file.uri], registry)
        for name, reason in self.broken.items():
            log.warning("assets.schema name=%s cannot be used: %s", name, reason)

    def _add(self, file: SchemaFile, linked: Linked, registry: jsonschema_rs.Registry) -> None:
        if linked.missing is not None:
            self.broken[file.name] = f"it needs {linked.missing!r}, which is not there"
            return
        try:
            validator = Validator(linked.document, registry=registry, base_uri=linked.uri)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            self.broken[file.name] = str(error).partition("\n")[0]
            return
        properties = file.document.get("properties")
        own = properties if isinstance(properties, Mapping) else {}
        markers = tuple(marker for marker in naming.MARKERS if marker not in own)
        self._validators[file.name] = (validator, markers)

    def refusal(self, schema: str) -> dict[str, Any] | None:
        """Why no asset can be checked against a schema of this name; None when one can."""
        name = naming.canonical(schema)
        if name in self._validators:
            return None
        if not naming.is_plain(schema):
            return failed(("/schema", "invalid_path"))
        return failed(("/schema", "schema_invalid" if name in self._known else "schema_not_found"))

    def verdict(self, asset: object, schema: str) -> dict[str, Any]:
        """The payload of `validate_asset`: every error by path, then message."""
        found = self._validators.get(naming.canonical(schema))
        if found is None:
            refusal = self.refusal(schema)
            assert refusal is not None  # noqa: S101 - for the type checker
            return refusal
        validator, markers = found
        violations = validator.violations(naming.without_markers(asset, markers))
        if not violations:
            return {"ok": True, "errors": []}
        return failed(*((each.path, each.message) for each in violations))


def _registry(linked: Iterable[Linked]) -> jsonschema_rs.Registry:
    """Everything that can be referred to. One document that is no schema must not spoil it."""
    usable = [(each.uri, each.document) for each in linked if each.missing is None]
    try:
        return jsonschema_rs.Registry(usable)
    except (ValueError, jsonschema_rs.ReferencingError):
        return jsonschema_rs.Registry([pair for pair in usable if _is_sound(pair)])


def _is_sound(pair: tuple[str, Any]) -> bool:
    """Whether a document by itself is fit for a registry, wherever its references lead."""
    try:
        jsonschema_rs.Registry([pair], retriever=lambda _uri: True)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
    return True
