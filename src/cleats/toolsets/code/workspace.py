"""A workspace: a file that names several repositories, to be looked after and searched together."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.pathnames import usable
from cleats.contract.violations import Validator
from cleats.toolsets.code import jsonc
from cleats.toolsets.code.repository import Repository

LARGEST: Final = 1 << 20
"""Bytes of a workspace file."""

_TAGS: Final = {"type": "array", "items": {"type": "string", "minLength": 1}}
_TRAITS: Final = {
    "enabled": {"type": "boolean"},
    "priority": {"type": "integer"},
    "tags": _TAGS,
}

SCHEMA: Final = {
    "type": "object",
    "required": ["schemaVersion", "repos"],
    "additionalProperties": False,
    "properties": {
        "schemaVersion": {"const": 1},
        "name": {"type": "string"},
        "cacheRoot": {"type": "string", "minLength": 1},
        "defaults": {"type": "object", "additionalProperties": False, "properties": _TRAITS},
        "repos": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["root"],
                "additionalProperties": False,
                "properties": {
                    "root": {"type": "string", "minLength": 1},
                    "alias": {"type": "string", "minLength": 1},
                    **_TRAITS,
                },
            },
        },
    },
}


@dataclass(frozen=True)
class Member:
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
    """What a file says."""

    path: Path
    name: str
    members: tuple[Member, ...]
    """The ones with a higher priority first, else as the file has them."""
    manifest_hash: str
    """Changes when the file says something else, not when it only looks otherwise."""

    @property
    def repo_set_id(self) -> str:
        """A name for the set of repositories that are enabled."""
        ids = sorted(each.repository.id for each in self.members if each.enabled)
        return f"ws1-{hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:16]}"

    @classmethod
    def read(cls, given: str, base: Path, cache: Path, within: Path | None = None) -> "Workspace":
        """Read a file, whose path may be relative to `base`.

        With `within`, the file and its repositories must be in that folder.

        Raises:
            ToolError: NOT_FOUND, there is none; INVALID_REQUEST, it is no workspace, or wants
                another cache than this server has; FORBIDDEN, something is outside.
        """
        path = _resolved(given, base)
        _check(path, within)
        text = _text(path, base)
        try:
            said = jsonc.parse(text)
        except (ValueError, RecursionError) as error:
            raise _wrong(path, f"it is not JSON: {error}") from None
        found = [violation.as_json() for violation in Validator(SCHEMA).violations(said)]
        if found:
            where = found[0]["instancePath"] or "the whole"
            raise _wrong(path, f"{where}: {found[0]['message']}", found)
        if "cacheRoot" in said and _place(path, said["cacheRoot"]) != cache.resolve():
            raise _wrong(path, f"it wants the cache {said['cacheRoot']}, this server has {cache}")
        members = _members(path, said)
        for member in members:
            _check(member.root, within)
        return cls(
            path=path,
            name=said.get("name", path.stem),
            members=members,
            manifest_hash=_hash(said),
        )


def _resolved(given: str, base: Path) -> Path:
    try:
        return (base / Path(usable(given)).expanduser()).resolve()
    except (OSError, ValueError, RuntimeError):
        raise _wrong(repr(given), "it is no usable path") from None


def _check(place: Path, within: Path | None) -> None:
    if within is not None and not place.is_relative_to(within):
        raise ToolError(
            ErrorCode.FORBIDDEN,
            f"{place} is outside of the repository that was named.",
            hint="With repoPath, a workspace and its repositories are in that folder. A server "
            "that is fenced to repositories, as over HTTP, has no others.",
        )


def _text(path: Path, base: Path) -> str:
    try:
        if not path.exists():
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"There is no workspace file {path}.",
                hint=f"Give its path, absolute or from {base}.",
            )
        if not path.is_file() or path.stat().st_size > LARGEST:
            raise _wrong(path, "it is no file of a usual size")
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise _wrong(path, reason) from None


def _members(path: Path, said: Mapping[str, Any]) -> tuple[Member, ...]:
    members = [_member(path, {**said.get("defaults", {}), **repo}) for repo in said["repos"]]
    for what, names in (
        ("alias", [each.alias for each in members]),
        ("root", [str(each.root) for each in members]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise _wrong(path, f"the {what} {twice[0]!r} is there twice")
    return tuple(sorted(members, key=lambda each: -each.priority))


def _member(path: Path, said: Mapping[str, Any]) -> Member:
    root = _place(path, said["root"])
    exists = root.is_dir()
    return Member(
        root=Repository.at(str(root), path.parent).root if exists else root,
        alias=said.get("alias", root.name or "root"),
        exists=exists,
        enabled=said.get("enabled", True),
        priority=said.get("priority", 0),
        tags=tuple(said.get("tags", ())),
    )


def _place(path: Path, given: str) -> Path:
    """A folder that a workspace names, from where the file is."""
    try:
        return (path.parent / Path(usable(given)).expanduser()).resolve()
    except (OSError, ValueError, RuntimeError):
        raise _wrong(path, f"{given!r} is no usable path") from None


def _hash(said: Any) -> str:
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _wrong(path: object, why: str, details: Any = None) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{path} is no workspace: {why}.",
        hint='A workspace is {"schemaVersion": 1, "repos": [{"root": "../app"}, ...]}.',
        details=details,
    )
