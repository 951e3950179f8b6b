"""Assets against schemas: compiled once at start, offline, safe to share between threads."""

import logging
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from cleats.contract.violations import Validator, worded
from cleats.toolsets.assets import naming
from cleats.toolsets.assets.library import SchemaFile, documents
from cleats.toolsets.assets.linking import OLDER, Linked, link, spread, without_dialect
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
    """Knows every schema and says whether an asset fits one of them.

    `known` has the names of all of them. `broken` has those that cannot be used, and why: for logs
    and people, never for answers.
    """

    def __init__(self, schemas: Mapping[str, SchemaFile], root: Root | None) -> None:
        self.known = frozenset(schemas)
        self._validators: dict[str, tuple[Validator, tuple[str, ...]]] = {}
        linked = link((file.uri, file.document) for file in schemas.values())
        if root and any(each.missing for each in linked.values()):
            # A reference leads to a file in a folder below. Those are only read when needed,
            # because a folder of schemas may stand at the top of a large tree.
            named = {file.uri: file.document for file in schemas.values()}
            linked = link({**named, **dict(documents(root)), **named}.items())
        registry = _registry(linked)
        for file in schemas.values():
            self._add(file, linked[file.uri], registry)
        spread(linked)
        self.broken = {
            file.name: reason
            for file in schemas.values()
            if (reason := linked[file.uri].missing) is not None
        }
        for name, reason in self.broken.items():
            self._validators.pop(name, None)
            log.warning("assets.schema name=%s cannot be used: %s", name, reason)

    def _add(self, file: SchemaFile, linked: Linked, registry: jsonschema_rs.Registry) -> None:
        if linked.missing is not None:
            return
        try:
            # Twice for most: once as it is, so that nothing about it is overlooked because it was
            # linked, and once as it is used.
            jsonschema_rs.meta.validate(without_dialect(file.document))
            validator = Validator(linked.document, registry=registry, base_uri=linked.uri)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            linked.missing = _fault(error, file.document.get("$schema"))
            return
        properties = file.document.get("properties")
        own = properties if isinstance(properties, Mapping) else {}
        markers = tuple(marker for marker in naming.MARKERS if marker not in own)
        self._validators[file.name] = (validator, markers)

    @property
    def names(self) -> list[str]:
        """The schemas that can be used."""
        return sorted(self._validators)

    def refusal(self, schema: str) -> dict[str, Any] | None:
        """Why no asset can be checked against a schema of this name; None when one can."""
        name = naming.canonical(schema)
        if name in self._validators:
            return None
        if not naming.is_plain(schema):
            return failed(("/schema", "invalid_path"))
        return failed(("/schema", "schema_invalid" if name in self.known else "schema_not_found"))

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


def _fault(error: Exception, dialect: object) -> str:
    """Why a schema will not do, and where. Many that will not were written for an older draft."""
    if not isinstance(error, jsonschema_rs.ValidationError) or error.kind.name == "$ref":
        return str(error).partition("\n")[0]  # of a reference the library tells where it leads
    found = worded(error)
    fault = f"{found.path}: {found.message}" if found.path else found.message
    older = isinstance(dialect, str) and dialect.removesuffix("#") in OLDER
    return f"{fault} (it is read as draft 2020-12, and says {dialect})" if older else fault


def _registry(linked: Mapping[str, Linked]) -> jsonschema_rs.Registry:
    """Everything that can be referred to. One document that is no schema must not spoil it."""
    try:
        return jsonschema_rs.Registry(_usable(linked))
    except (ValueError, jsonschema_rs.ReferencingError):
        for each in linked.values():
            if each.missing is None and not _is_sound((each.uri, each.document)):
                each.missing = "it has an $id that is none"
        spread(linked)
        return jsonschema_rs.Registry(_usable(linked))


def _usable(linked: Mapping[str, Linked]) -> list[tuple[str, Any]]:
    return [(each.uri, each.document) for each in linked.values() if each.missing is None]


def _is_sound(pair: tuple[str, Any]) -> bool:
    """Whether a document by itself is fit for a registry, wherever its references lead."""
    try:
        jsonschema_rs.Registry([pair], retriever=lambda _uri: True)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
    return True
