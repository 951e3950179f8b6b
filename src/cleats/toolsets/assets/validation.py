"""Validation of assets: schemas are compiled once at start, offline, and are thread-safe."""

import logging
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from cleats.contract.violations import Validator, convert_error
from cleats.toolsets.assets import schema_names
from cleats.toolsets.assets.library import SchemaFile, iter_documents
from cleats.toolsets.assets.references import (
    LinkedSchema,
    drop_unknown_dialect,
    link_documents,
    propagate_failures,
)
from cleats.toolsets.assets.sources import AssetRoot

log = logging.getLogger(__name__)


def validation_failure(*errors: tuple[str, str]) -> dict[str, Any]:
    """Return the payload of a failed validation, its errors in their fixed order."""
    return {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": path, "msg": message} for path, message in sorted(set(errors))],
    }


class AssetValidator:
    """A validator of assets against every schema.

    `schema_names` has the names of all schemas. `broken_schemas` has those that cannot be used, and
    the reasons: for logs and people, never for answers.
    """

    def __init__(
        self,
        schemas: Mapping[str, SchemaFile],
        root: AssetRoot | None,
        other_documents: Mapping[str, Any] | None = None,
    ) -> None:
        """Compile schemas, which may refer to all documents below a root or to other documents by URI."""
        self.schema_names = frozenset(schemas)
        self._validators: dict[str, tuple[Validator, tuple[str, ...]]] = {}
        linked = link_documents(
            {**(other_documents or {}), **{file.uri: file.document for file in schemas.values()}}.items()
        )
        if root and any(linked_schema.failure for linked_schema in linked.values()):
            # A reference leads to a file in a subfolder. Those are only read when needed,
            # because a folder of schemas may be the top of a large tree.
            documents_by_uri = {file.uri: file.document for file in schemas.values()}
            linked = link_documents({**documents_by_uri, **dict(iter_documents(root)), **documents_by_uri}.items())
        registry = _build_registry(linked)
        for file in schemas.values():
            self._add_schema(file, linked[file.uri], registry)
        propagate_failures(linked)
        self.broken_schemas = {
            file.name: reason for file in schemas.values() if (reason := linked[file.uri].failure) is not None
        }
        for name, reason in self.broken_schemas.items():
            self._validators.pop(name, None)
            log.warning("assets.schema name=%s cannot be used: %s", name, reason)

    def _add_schema(self, file: SchemaFile, linked: LinkedSchema, registry: jsonschema_rs.Registry) -> None:
        if linked.failure is not None:
            return
        try:
            # Checked twice: once unchanged, so that linking hides no fault, and once in the linked form that is used.
            jsonschema_rs.meta.validate(drop_unknown_dialect(file.document))
            validator = Validator(linked.document, registry=registry, base_uri=linked.uri)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            linked.failure = _describe_fault(error, file.document)
            return
        properties = file.document.get("properties")
        declared = properties if isinstance(properties, Mapping) else {}
        markers = tuple(marker for marker in schema_names.SCHEMA_MARKERS if marker not in declared)
        self._validators[file.name] = (validator, markers)

    @property
    def usable_names(self) -> list[str]:
        """The names of the schemas that can be used."""
        return sorted(self._validators)

    def check_schema(self, schema: str) -> dict[str, Any] | None:
        """Return the failure payload for an unusable schema name, or None if it is usable."""
        name = schema_names.resolve_alias(schema)
        if name in self._validators:
            return None
        if not schema_names.is_plain_name(schema):
            return validation_failure(("/schema", "invalid_path"))
        return validation_failure(("/schema", "schema_invalid" if name in self.schema_names else "schema_not_found"))

    def validate(self, asset: object, schema: str) -> dict[str, Any]:
        """Return the payload of `validate_asset`: every error by path, then message."""
        compiled = self._validators.get(schema_names.resolve_alias(schema))
        if compiled is None:
            refusal = self.check_schema(schema)
            assert refusal is not None  # noqa: S101 - for the type checker
            return refusal
        validator, markers = compiled
        violations = validator.find_violations(schema_names.strip_markers(asset, markers))
        if not violations:
            return {"ok": True, "errors": []}
        return validation_failure(*((violation.path, violation.message) for violation in violations))


def _describe_fault(error: Exception, document: Mapping[str, Any]) -> str:
    """Describe why and where a schema is invalid; one that declares no draft may be written for an older one."""
    if not isinstance(error, jsonschema_rs.ValidationError) or error.kind.name == "$ref":
        return str(error).partition("\n")[0]  # for a reference, the library names its target
    violation = convert_error(error, document)
    fault = f"{violation.path}: {violation.message}" if violation.path else violation.message
    return fault if "$schema" in document else f"{fault} (without $schema it is read as draft 2020-12)"


def _build_registry(linked: Mapping[str, LinkedSchema]) -> jsonschema_rs.Registry:
    """Return a registry of all reference targets; one invalid document must not break it."""
    try:
        return jsonschema_rs.Registry(_usable_documents(linked))
    except (ValueError, jsonschema_rs.ReferencingError):
        for schema in linked.values():
            if schema.failure is None and not _is_registrable((schema.uri, schema.document)):
                schema.failure = "its $id is not a valid URI"
        propagate_failures(linked)
        return jsonschema_rs.Registry(_usable_documents(linked))


def _usable_documents(linked: Mapping[str, LinkedSchema]) -> list[tuple[str, Any]]:
    return [(schema.uri, schema.document) for schema in linked.values() if schema.failure is None]


def _is_registrable(pair: tuple[str, Any]) -> bool:
    """Return whether a document alone fits into a registry, wherever its references lead."""
    try:
        jsonschema_rs.Registry([pair], retriever=lambda _uri: True)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
    return True
