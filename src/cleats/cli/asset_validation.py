"""Validation of asset files for the command line: find files, check them, report the results."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from cleats.cli.output import format_columns, format_count
from cleats.toolsets.assets import schema_names
from cleats.toolsets.assets.validation import AssetValidator
from cleats.toolsets.code.workspace import parse_jsonc
from cleats.transports.jsonrpc import InvalidJsonError, decode_json

YAML_SUFFIXES = (".yaml", ".yml")
ASSET_SUFFIXES = (".json", ".jsonc", *YAML_SUFFIXES)
"""The suffixes of the files below a folder that may be assets."""

UNREADABLE_REASONS = frozenset({"io_error", "parse_error"})
_UNKNOWN_SCHEMA_ERROR = {"path": "/schema", "msg": "schema_not_found"}


@dataclass(frozen=True, slots=True)
class AssetFile:
    """A file to check."""

    path: str
    is_explicit: bool
    """Whether the path was given explicitly; a file found below a folder need not be an asset."""


@dataclass(frozen=True, slots=True)
class AssetCheck:
    """A file, the schema it was checked against, and the result."""

    path: str
    schema: str | None
    payload: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    """The reason why the file could not be read, worded for people."""

    @property
    def state(self) -> str:
        if not self.payload:
            return "no schema"
        if self.payload["ok"]:
            return "valid"
        return "unreadable" if self.payload["reason"] in UNREADABLE_REASONS else "invalid"


class UnreadableFile(Exception):  # noqa: N818 - a state of a file
    """Raised when a file cannot be read or is not JSON."""

    def __init__(self, message: str, detail: str, reason: str = "parse_error") -> None:
        super().__init__(message)
        self.payload = {"ok": False, "reason": reason, "detail": detail}


def find_files(paths: Iterable[str]) -> Iterator[AssetFile]:
    """Yield the files in `paths`, and every asset file below the folders in `paths`, in order."""
    for path in paths:
        if not Path(path).is_dir():
            yield AssetFile(path, is_explicit=True)
            continue
        walk_errors: list[OSError] = []
        for current_folder, folders, names in os.walk(path, onerror=walk_errors.append):
            folders.sort()
            for name in sorted(names):
                if name.lower().endswith(ASSET_SUFFIXES):
                    yield AssetFile(os.path.join(current_folder, name), is_explicit=False)  # noqa: PTH118 - keeps `./`
        # An unreadable folder is not an empty one; as a file it is reported as unreadable.
        yield from (AssetFile(error.filename, is_explicit=True) for error in walk_errors)


def read_document(path: str) -> Any:
    """Read a file and decode its JSON, or its YAML or JSON with comments if its name says so.

    Raises:
        UnreadableFile: The file cannot be read or decoded.
    """
    try:
        content = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf")
    except FileNotFoundError:
        raise UnreadableFile("the file does not exist", "file_not_found", "io_error") from None
    except (OSError, ValueError):  # ValueError: the path contains a NUL
        raise UnreadableFile("it cannot be read", "read_failed", "io_error") from None
    if path.lower().endswith((".jsonc", *YAML_SUFFIXES)):
        return _decode_text(path, content)
    try:
        return decode_json(content)
    except InvalidJsonError as error:
        raise _explain_json_error(content, error) from None


def _decode_text(path: str, content: bytes) -> Any:
    try:
        text = content.decode()
        value = _load_yaml(text) if path.lower().endswith(YAML_SUFFIXES) else parse_jsonc(text)
        return decode_json(json.dumps(value, allow_nan=False).encode())  # no value that JSON cannot have
    except UnicodeDecodeError:
        raise UnreadableFile("it is not UTF-8", "not_utf8") from None
    except RecursionError:
        raise UnreadableFile("it is nested too deeply", "nested_too_deeply") from None
    except (ValueError, TypeError) as error:
        kind = "YAML" if path.lower().endswith(YAML_SUFFIXES) else "JSON with comments"
        reason = " ".join(str(error).split())
        raise UnreadableFile(f"it is not valid {kind} ({reason})", f"decode_error: {reason}") from None


def _load_yaml(text: str) -> Any:
    """Load YAML by the core rules: a date is text, as it is in JSON, and every key must be text.

    Raises:
        ValueError: The text is not such YAML.
    """
    import yaml  # noqa: PLC0415 - few assets are YAML

    class JsonLoader(yaml.SafeLoader):
        """A loader that gives values of JSON only; JSON would silently turn a key that is a number into text."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            mapping = super().construct_mapping(node, deep)
            if wrong_keys := [key for key in mapping if not isinstance(key, str)]:
                raise ValueError(f"the key {wrong_keys[0]!r} is not text")
            return mapping

    JsonLoader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        return yaml.load(text, JsonLoader)  # noqa: S506 - a safe loader with fewer types
    except (yaml.YAMLError, LookupError, AttributeError) as error:
        raise ValueError(str(error)) from None


def _explain_json_error(content: bytes, error: InvalidJsonError) -> UnreadableFile:
    place = str(error)  # NaN, half of a surrogate pair: only our stricter decoder refuses them
    try:
        json.loads(content)
    except json.JSONDecodeError as decode_error:
        place = f"line {decode_error.lineno} column {decode_error.colno}"
    except UnicodeDecodeError:
        return UnreadableFile("it is not UTF-8", "not_utf8")
    except RecursionError:
        return UnreadableFile("it is nested too deeply", "nested_too_deeply")
    return UnreadableFile(f"it is not valid JSON ({place})", f"json_decode_error: {place}")


def check_file(judge: AssetValidator, file: AssetFile, schema: str | None, *, is_asset: bool = False) -> AssetCheck:
    """Check one file against a schema; `is_asset` treats it as an asset whatever its name is."""
    try:
        asset = read_document(file.path)
    except UnreadableFile as error:
        return AssetCheck(file.path, None, error.payload, str(error))
    infer_schema = schema_names.infer_asset_schema if is_asset else schema_names.infer_schema
    name = schema or infer_schema(asset, Path(file.path).as_posix(), judge.schema_names)
    if schema is None and not file.is_explicit and _should_skip(judge, file.path, asset, name):
        return AssetCheck(file.path, None)
    return AssetCheck(file.path, name, judge.validate(asset, name))


def _should_skip(judge: AssetValidator, path: str, asset: Any, name: str) -> bool:
    """Return whether to skip a file below a folder: a schema, or a file without a known schema."""
    if path.endswith(schema_names.SCHEMA_SUFFIXES[0]):
        return True
    return schema_names.read_marker(asset) is None and judge.check_schema(name) is not None


def exit_code(checks: Sequence[AssetCheck]) -> int:
    """Return the exit code for the checks.

    It is 0 if all files are valid, 1 if one is invalid or none was checked, 2 if one is unreadable.
    """
    states = {file_check.state for file_check in checks}
    if "unreadable" in states:
        return 2
    return int("invalid" in states or "valid" not in states)


def render_report(checks: Sequence[AssetCheck], judge: AssetValidator) -> Iterator[str]:
    """Yield the report for people: every file that is not valid, then the totals."""
    for file_check in checks:
        if file_check.state in {"invalid", "unreadable"}:
            refusal = file_check.reason or (file_check.schema and describe_unusable_schema(judge, file_check.schema))
            against = f" ({file_check.schema})" if file_check.schema and not refusal else ""
            yield click.style(file_check.path, fg="red", bold=True) + against
            errors = file_check.payload.get("errors", ())
            yield format_columns(
                [(refusal,)] if refusal else [(error["path"] or "(root)", error["msg"]) for error in errors]
            )
            yield ""
    yield _summarize_checks(checks)
    has_unknown_schema = any(_UNKNOWN_SCHEMA_ERROR in file_check.payload.get("errors", ()) for file_check in checks)
    if has_unknown_schema or {file_check.state for file_check in checks} == {"no schema"}:
        yield f"Choose the schema with --schema NAME. {list_schemas(judge)}"


def list_schemas(judge: AssetValidator) -> str:
    """List the schemas that `--schema` accepts as one sentence."""
    return f"Known schemas: {', '.join(judge.usable_names) or 'none; give their folder with --schemas DIR'}."


def describe_unusable_schema(judge: AssetValidator, schema: str) -> str:
    """Describe why a schema cannot be used, or return an empty string if it can."""
    if judge.check_schema(schema) is None:
        return ""
    if (reason := judge.broken_schemas.get(schema_names.resolve_alias(schema))) is not None:
        return f"the schema {schema!r} cannot be used: {reason}"
    return f"unknown schema {schema!r}"


def _summarize_checks(checks: Sequence[AssetCheck]) -> str:
    counts = dict.fromkeys(("valid", "invalid", "unreadable", "no schema"), 0)
    for file_check in checks:
        counts[file_check.state] += 1
    total = len(checks)
    counts["without a schema"] = counts.pop("no schema")
    parts = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    return f"{format_count(total, 'file')}: {parts or 'no file to check'}"


def build_json_report(checks: Sequence[AssetCheck]) -> dict[str, Any]:
    """Return the report for scripts, with a verdict for every file."""
    results = [
        {"path": file_check.path, "schema": file_check.schema, **(file_check.payload or {"skipped": True})}
        for file_check in checks
    ]
    return {"ok": exit_code(checks) == 0, "results": results}
