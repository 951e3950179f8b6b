"""Access tokens of the API: the file that defines their rights, and the check of a request.

The file is TOML. It holds no token, only the SHA-256 of each, so that reading it gives no access:

    [[token]]
    name = "ci"
    sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    toolsets = ["code"]            # default: all that are served
    repositories = ["/srv/repos"]  # default: the server's own and those of `http_roots`
    per_minute = 120               # requests; default: no limit
    burst = 20                     # requests at once; default: `per_minute`

A plain hash is enough, because we generate tokens from 256 random bits: they cannot be guessed.
"""

import hmac
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from cleats.contract.violations import Validator
from cleats.settings import SettingError

TOKEN_PREFIX = "cleats_"
"""The start of every generated token, so that a scanner finds one that was committed by mistake."""

_TOKEN_NAME_PATTERN = "^[A-Za-z0-9_.@-]{1,64}$"

_TOKENS_FILE_SCHEMA = {
    "type": "object",
    "required": ["token"],
    "additionalProperties": False,
    "properties": {
        "token": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "sha256"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string", "pattern": _TOKEN_NAME_PATTERN},
                    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                    "toolsets": {"type": "array", "items": {"type": "string"}},
                    "repositories": {
                        "type": "array",
                        "minItems": 1,
                        "items": {"type": "string", "pattern": "^[/~]|^[A-Za-z]:"},
                    },
                    "per_minute": {"type": "number", "exclusiveMinimum": 0},
                    "burst": {"type": "integer", "minimum": 1},
                },
            },
        }
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """The rights of one caller. None means no limit except the server's own."""

    name: str = ""
    sha256: str = ""
    toolsets: tuple[str, ...] | None = None
    repositories: tuple[Path, ...] | None = None
    per_minute: float | None = None
    burst: int | None = None


SINGLE_TOKEN_NAME = "http_token"
"""The name of the token that the setting `http_token` holds."""

ANONYMOUS_TOKEN = AccessToken()
"""The caller of a server without tokens."""


def is_token_name(text: str) -> bool:
    """Return whether a text is a valid name for a token."""
    return re.fullmatch(_TOKEN_NAME_PATTERN, text) is not None and text != SINGLE_TOKEN_NAME


def hash_token(token: str | bytes) -> str:
    """Return the hash of a token as stored in the file."""
    return sha256(token.encode() if isinstance(token, str) else token).hexdigest()


def generate_token() -> str:
    """Return a new random token."""
    return TOKEN_PREFIX + token_urlsafe(32)


def format_entry(token: AccessToken) -> str:
    """Format a token as an entry of the file."""
    lines = ["[[token]]", f'name = "{token.name}"', f'sha256 = "{token.sha256}"']
    if token.toolsets is not None:
        lines.append(f"toolsets = {_format_list(token.toolsets)}")
    if token.repositories is not None:
        lines.append(f"repositories = {_format_list(map(str, token.repositories))}")
    if token.per_minute is not None:
        lines.append(f"per_minute = {token.per_minute:g}")
    if token.burst is not None:
        lines.append(f"burst = {token.burst}")
    return "\n".join(lines) + "\n"


def _format_list(texts: Any) -> str:
    quoted = ('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)
    return f"[{', '.join(quoted)}]"


def load_tokens(single: str, file: str, served_names: Sequence[str]) -> tuple[AccessToken, ...]:
    """Return every token that grants access; an empty tuple means that anyone may call.

    Raises:
        SettingError: The file cannot be read or is invalid, names a toolset that is not among
            `served_names`, or can be written by others than its owner.
    """
    single_tokens = [AccessToken(name=SINGLE_TOKEN_NAME, sha256=hash_token(single))] if single else []
    return (
        (*single_tokens, *_read_tokens_file(Path(file).expanduser().absolute(), served_names))
        if file
        else tuple(single_tokens)
    )


def _read_tokens_file(path: Path, served_names: Sequence[str]) -> list[AccessToken]:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            document = tomllib.load(file)
    except OSError as error:
        raise SettingError(f"http_tokens: cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"http_tokens: {path} is no TOML: {error}") from None
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SettingError(f"http_tokens: others can write {path}; run: chmod go-w {path}")
    if (problem := _find_problem(document)) is not None:
        raise SettingError(f"http_tokens: {path}: {problem}")
    tokens = [_parse_token(row) for row in document["token"]]
    _check_tokens(path, tokens, served_names)
    return tokens


def _find_problem(document: Mapping[str, Any]) -> str | None:
    try:
        violations = Validator(_TOKENS_FILE_SCHEMA).find_violations(document)
    except (TypeError, ValueError):  # TOML has dates, JSON does not
        return "there is a value that no entry can have"
    return f"{violations[0].path or 'the file'}: {violations[0].message}" if violations else None


def _parse_token(row: Mapping[str, Any]) -> AccessToken:
    toolsets, repositories = row.get("toolsets"), row.get("repositories")
    return AccessToken(
        name=row["name"],
        sha256=row["sha256"],
        toolsets=None if toolsets is None else tuple(toolsets),
        repositories=None
        if repositories is None
        else tuple(Path(folder).expanduser().resolve() for folder in repositories),
        per_minute=row.get("per_minute"),
        burst=row.get("burst"),
    )


def _check_tokens(path: Path, tokens: Sequence[AccessToken], served_names: Sequence[str]) -> None:
    names = [token.name for token in tokens]
    for name in {name for name in names if names.count(name) > 1 or name == SINGLE_TOKEN_NAME}:
        raise SettingError(f"http_tokens: {path}: the name {name!r} is taken")
    hashes = [token.sha256 for token in tokens]
    if len(set(hashes)) < len(hashes):
        raise SettingError(f"http_tokens: {path}: two names have the same token")
    for name in {toolset_name for token in tokens for toolset_name in token.toolsets or ()} - set(served_names):
        raise SettingError(f"http_tokens: {path}: no toolset {name!r} is served")


def match_bearer_token(tokens: Sequence[AccessToken], header: str) -> AccessToken | None:
    """Return the token in an Authorization header, or None if it is unknown.

    Every entry is compared, and each comparison takes as long for any wrong token.
    """
    scheme, _, credential = header.partition(" ")
    # Headers are read as Latin-1; the bytes are what the caller sent.
    digest = hash_token(credential.strip().encode("latin-1", "replace")).encode()
    matched = None
    for token in tokens:
        if hmac.compare_digest(digest, token.sha256.encode()):
            matched = token
    return matched if scheme.lower() == "bearer" else None
