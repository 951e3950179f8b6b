"""What a run writes down: names, bytes, media types and schemas of artifacts.

A JSON artifact is canonical (UTF-8, keys in order, two spaces, one line end), so that the same
inputs give the same bytes. Its schema is found by its name: `page_plan.json` fits
`schemas/page_plan.schema.json`, and so does `drafts/docs/page_plan.json`.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleats.contract.errors import ErrorCode, ToolError

if TYPE_CHECKING:
    import jsonschema_rs

    from cleats.contract.violations import Validator

SCHEMAS = Path(__file__).parent / "schemas"

_BASE = "https://cleats.invalid/launch/"
"""Where the schemas would live if they had an address; it lets one refer to another by file."""

_NAME = re.compile(
    r"[A-Za-z0-9_@+=.,-][A-Za-z0-9_@+=., -]*(/[A-Za-z0-9_@+=.,-][A-Za-z0-9_@+=., -]*)*"
)

_TYPES: Mapping[str, str] = {
    ".json": "application/json",
    ".md": "text/markdown",
    ".ndjson": "application/x-ndjson",
    ".yaml": "application/x-yaml",
    ".yml": "application/x-yaml",
    ".toml": "application/toml",
    ".html": "text/html",
    ".txt": "text/plain",
    ".log": "text/plain",
    ".patch": "text/x-diff",
    ".diff": "text/x-diff",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}


def canonical(document: Any) -> bytes:
    """The one way to write a JSON artifact down."""
    text = json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def compact(document: Any) -> str:
    """The one way to write JSON that is hashed: keys in order, no spaces, no escapes."""
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(data: bytes) -> str:
    """What an artifact is known by."""
    return hashlib.sha256(data).hexdigest()


def check_name(name: str) -> str:
    """Let a usable artifact name pass: a relative POSIX path of plain characters.

    Raises:
        ToolError: INVALID_INPUT.
    """
    parts = name.split("/")
    if len(name) > 512 or ".." in parts or "." in parts or not _NAME.fullmatch(name):
        raise ToolError(ErrorCode.INVALID_INPUT, f"no artifact can be called {name[:80]!r}")
    return name


def content_type(name: str) -> str:
    """The media type of an artifact, by its name."""
    return _TYPES.get(Path(name).suffix.lower(), "application/octet-stream")


def schema_of(name: str) -> str:
    """The id of the schema that an artifact has to fit; empty when there is none."""
    file = name.rsplit("/", 1)[-1]
    if not file.endswith(".json"):
        return ""
    stem = file.split(".", 1)[0]
    return stem if stem in _ids() else ""


def check(name: str, document: Any) -> None:
    """Let a document pass that fits the schema of its name, or has none.

    Raises:
        ToolError: SCHEMA_VALIDATION_FAILED, with a JSON Pointer for every fault.
    """
    if not (schema := schema_of(name)):
        return
    if found := faults(schema, document):
        raise ToolError(
            ErrorCode.SCHEMA_VALIDATION_FAILED,
            f"{name} does not fit its schema: {found[0]['path'] or '/'}: {found[0]['message']}",
            details={"artifact": name, "schema_id": schema, "errors": found},
        )


def faults(schema: str, document: Any) -> list[dict[str, str]]:
    """What keeps a document from fitting one of our schemas, each with its JSON Pointer."""
    return [
        {"path": each.path, "keyword": each.keyword, "message": each.message}
        for each in validator(schema).violations(document)
    ]


def load(schema: str) -> dict[str, Any]:
    """One of our schemas as a document."""
    text = (SCHEMAS / f"{schema}.schema.json").read_bytes()
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def validator(schema: str) -> "Validator":
    """One of our schemas, compiled."""
    # Only those who check a document pay for the validator: a worker starts often.
    from cleats.contract.violations import Validator  # noqa: PLC0415

    return Validator(load(schema), registry=_registry(), base_uri=f"{_BASE}{schema}.schema.json")


@cache
def _registry() -> "jsonschema_rs.Registry":
    import jsonschema_rs  # noqa: PLC0415 - as above

    return jsonschema_rs.Registry(
        [(f"{_BASE}{each}.schema.json", load(each)) for each in sorted(_ids())]
    )


@cache
def _ids() -> frozenset[str]:
    return frozenset(path.name.split(".", 1)[0] for path in SCHEMAS.glob("*.schema.json"))
