"""Workspaces: files that name several repositories to be maintained and searched together."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.violations import Validator
from cleats.system.safe_paths import resolve_path
from cleats.toolsets.code.repository import Repository

_TOKEN_PATTERN = re.compile(
    r'(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<comma>,)|(?P<other>.)', re.DOTALL
)
_CLOSING_BRACKET_PATTERN = re.compile(r"(?>\s+|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*[\]}]", re.DOTALL)


def parse_jsonc(text: str) -> Any:
    """Parse a text and return its value.

    Raises:
        ValueError: The text is not JSON with comments; the message says where.
    """
    # Comments and trailing commas are blanked out: every line and column keeps its position.
    plain_text = "".join(_blank_token(match, text) for match in _TOKEN_PATTERN.finditer(text))
    return json.loads(plain_text, object_pairs_hook=_build_object, parse_constant=_reject_constant)


def _blank_token(match: re.Match[str], text: str) -> str:
    if match["comment"] is not None:
        return re.sub(r"[^\n]", " ", match["comment"])
    if match["comma"] is not None and _CLOSING_BRACKET_PATTERN.match(text, match.end()):
        return " "
    return match[0]


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if duplicates := _find_duplicates([name for name, _ in pairs]):
        raise ValueError(f"{duplicates[0]!r} occurs twice")
    return dict(pairs)


def _find_duplicates(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


MAX_WORKSPACE_BYTES: Final = 1 << 20
"""The largest size of a workspace file, in bytes."""

_TAGS_SCHEMA: Final = {"type": "array", "items": {"type": "string", "minLength": 1}}
_MEMBER_PROPERTIES: Final = {"enabled": {"type": "boolean"}, "priority": {"type": "integer"}, "tags": _TAGS_SCHEMA}

WORKSPACE_SCHEMA: Final = {
    "type": "object",
    "required": ["schemaVersion", "repos"],
    "additionalProperties": False,
    "properties": {
        "schemaVersion": {"const": 1},
        "name": {"type": "string"},
        "cacheRoot": {"type": "string", "minLength": 1},
        "defaults": {"type": "object", "additionalProperties": False, "properties": _MEMBER_PROPERTIES},
        "repos": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["root"],
                "additionalProperties": False,
                "properties": {
                    "root": {"type": "string", "minLength": 1},
                    "alias": {"type": "string", "minLength": 1},
                    **_MEMBER_PROPERTIES,
                },
            },
        },
    },
}


@dataclass(frozen=True)
class WorkspaceMember:
    """A repository of a workspace."""

    root: Path
    alias: str
    exists: bool
    enabled: bool = True
    priority: int = 0
    tags: tuple[str, ...] = field(default=())

    @property
    def repository(self) -> Repository:
        return Repository(self.root)


@dataclass(frozen=True)
class Workspace:
    """The content of a workspace file."""

    path: Path
    name: str
    members: tuple[WorkspaceMember, ...]
    """The repositories, by descending priority, otherwise in the order of the file."""
    manifest_hash: str
    """The hash of the content, which ignores the formatting of the file."""

    @property
    def repo_set_id(self) -> str:
        """An id of the set of enabled repositories."""
        ids = sorted(member.repository.id for member in self.members if member.enabled)
        return f"ws1-{hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:16]}"

    @classmethod
    def read(cls, path_text: str, base: Path, cache: Path, within: Path | None = None) -> "Workspace":
        """Read a workspace file, whose path may be relative to `base`.

        With `within`, the file and its repositories must be in that folder.

        Raises:
            ToolError: NOT_FOUND, the file does not exist; INVALID_REQUEST, it is not a workspace,
                or requires another cache than this server's; FORBIDDEN, a path is outside of
                `within`.
        """
        path = _resolve_path(path_text, base, _build_error(repr(path_text), "the path is invalid"))
        _check_location(path, within)
        text = _read_text(path, base)
        try:
            document = parse_jsonc(text)
        except (ValueError, RecursionError) as error:
            raise _build_error(path, f"it is not JSON: {error}") from None
        violations = [violation.as_json() for violation in Validator(WORKSPACE_SCHEMA).find_violations(document)]
        if violations:
            location = violations[0]["instancePath"] or "the whole"
            raise _build_error(path, f"{location}: {violations[0]['message']}", violations)
        if "cacheRoot" in document and _resolve_folder(path, document["cacheRoot"]) != cache.resolve():
            raise _build_error(path, f"it requires the cache {document['cacheRoot']}, this server has {cache}")
        members = _parse_members(path, document)
        for member in members:
            _check_location(member.root, within)
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        manifest_hash = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        return cls(path, document.get("name", path.stem), members, manifest_hash)


def _resolve_path(path_text: str, base: Path, error: ToolError) -> Path:
    try:
        return resolve_path(base, path_text, expands_home=True)
    except ValueError:
        raise error from None


def _check_location(path: Path, within: Path | None) -> None:
    if within is not None and not path.is_relative_to(within):
        raise ToolError(
            ErrorCode.FORBIDDEN,
            f"{path} is outside the repository in repoPath.",
            hint="With repoPath, the workspace file and its repositories must be in that folder. A server "
            "that is limited to some repositories, as over HTTP, accepts no others.",
        )


def _read_text(path: Path, base: Path) -> str:
    try:
        if not path.exists():
            hint = f"Give its path, absolute or from {base}."
            raise ToolError(ErrorCode.NOT_FOUND, f"The workspace file {path} does not exist.", hint=hint)
        if not path.is_file() or path.stat().st_size > MAX_WORKSPACE_BYTES:
            raise _build_error(path, "it is not a regular file, or it is too large")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise _build_error(path, getattr(error, "strerror", None) or "it is not text") from None


def _parse_members(path: Path, document: Mapping[str, Any]) -> tuple[WorkspaceMember, ...]:
    members = [_parse_member(path, {**document.get("defaults", {}), **repo}) for repo in document["repos"]]
    for key in ("alias", "root"):
        if duplicates := _find_duplicates([str(getattr(member, key)) for member in members]):
            raise _build_error(path, f"the {key} {duplicates[0]!r} occurs twice")
    return tuple(sorted(members, key=lambda member: -member.priority))


def _parse_member(path: Path, entry: Mapping[str, Any]) -> WorkspaceMember:
    root = _resolve_folder(path, entry["root"])
    exists = root.is_dir()
    return WorkspaceMember(
        root=Repository.from_path(str(root), path.parent).root if exists else root,
        alias=entry.get("alias", root.name or "root"),
        exists=exists,
        enabled=entry.get("enabled", True),
        priority=entry.get("priority", 0),
        tags=tuple(entry.get("tags", ())),
    )


def _resolve_folder(path: Path, path_text: str) -> Path:
    return _resolve_path(path_text, path.parent, _build_error(path, f"{path_text!r} is not a valid path"))


def _build_error(path: object, reason: str, details: Any = None) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{path} is not a valid workspace file: {reason}.",
        hint='A workspace is {"schemaVersion": 1, "repos": [{"root": "../app"}, ...]}.',
        details=details,
    )
