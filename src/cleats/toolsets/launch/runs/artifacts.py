"""Names, bytes, media types and schemas of artifacts.

A JSON artifact is canonical (UTF-8, sorted keys, two spaces, one line end), so that the same inputs
give the same bytes. Its name selects its schema: `page_plan.json` is validated against
`schemas/page_plan.schema.json`, and so is `drafts/docs/page_plan.json`.
"""

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

SCHEMA_FOLDER = Path(__file__).parents[1] / "schemas"

_SCHEMA_BASE_URI = "https://cleats.invalid/launch/"
"""A base URI for the schemas; it lets one schema refer to another by file name."""

_ARTIFACT_NAME_PATTERN = re.compile(r"[A-Za-z0-9_@+=.,-][A-Za-z0-9_@+=., -]*(/[A-Za-z0-9_@+=.,-][A-Za-z0-9_@+=., -]*)*")

_CONTENT_TYPES: Mapping[str, str] = {
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
    ".zip": "application/zip",
}


def encode_canonical_json(document: Any) -> bytes:
    """Encode a document as a JSON artifact: sorted keys, indented, one line end."""
    text = json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def format_compact_json(document: Any) -> str:
    """Format a document as the JSON that is hashed: sorted keys, no spaces, no escapes."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def check_name(name: str) -> str:
    """Check that an artifact name is a relative POSIX path of plain characters, and return it.

    Raises:
        ToolError: INVALID_INPUT.
    """
    parts = name.split("/")
    if len(name) > 512 or ".." in parts or "." in parts or not _ARTIFACT_NAME_PATTERN.fullmatch(name):
        raise ToolError(ErrorCode.INVALID_INPUT, f"invalid artifact name {name[:80]!r}")
    return name


def guess_content_type(name: str) -> str:
    """Return the media type of an artifact, guessed from the suffix of its name."""
    return _CONTENT_TYPES.get(Path(name).suffix.lower(), "application/octet-stream")


def find_schema_id(name: str) -> str:
    """Return the id of the schema that an artifact has to match; empty if there is none."""
    file_name = name.rsplit("/", 1)[-1]
    if not file_name.endswith(".json"):
        return ""
    stem = file_name.split(".", 1)[0]
    return stem if stem in _list_schema_ids() else ""


def check_document(name: str, document: Any) -> None:
    """Check a document against the schema of its name, if there is one.

    Raises:
        ToolError: SCHEMA_VALIDATION_FAILED, with a JSON Pointer for every fault.
    """
    if not (schema_id := find_schema_id(name)):
        return
    if faults := find_faults(schema_id, document):
        raise ToolError(
            ErrorCode.SCHEMA_VALIDATION_FAILED,
            describe_misfit(name, faults[0]),
            details={"artifact": name, "schema_id": schema_id, "errors": faults},
        )


def describe_misfit(name: str, fault: Mapping[str, str]) -> str:
    """Return a sentence about a fault; one of the whole document is not given a place, since `/` is the empty key."""
    place = f"{fault['path']}: " if fault["path"] else ""
    return f"{name} does not fit its schema: {place}{fault['message']}"


def find_faults(schema_id: str, document: Any) -> list[dict[str, str]]:
    """Return the faults of a document against a schema, each with its JSON Pointer."""
    return [
        {"path": violation.path, "keyword": violation.keyword, "message": violation.message}
        for violation in load_validator(schema_id).find_violations(document)
    ]


def load_schema(schema_id: str) -> dict[str, Any]:
    """Load a launch schema as a document."""
    document: dict[str, Any] = json.loads((SCHEMA_FOLDER / f"{schema_id}.schema.json").read_bytes())
    return document


@cache
def load_validator(schema_id: str) -> "Validator":
    """Load and compile a launch schema."""
    # Imported on first use: workers start often, and most never validate a document.
    from cleats.contract.violations import Validator  # noqa: PLC0415

    return Validator(
        load_schema(schema_id), registry=_load_registry(), base_uri=f"{_SCHEMA_BASE_URI}{schema_id}.schema.json"
    )


@cache
def _load_registry() -> "jsonschema_rs.Registry":
    import jsonschema_rs  # noqa: PLC0415 - as above

    resources = [(f"{_SCHEMA_BASE_URI}{name}.schema.json", load_schema(name)) for name in sorted(_list_schema_ids())]
    return jsonschema_rs.Registry(resources)


@cache
def _list_schema_ids() -> frozenset[str]:
    return frozenset(path.name.split(".", 1)[0] for path in SCHEMA_FOLDER.glob("*.schema.json"))
