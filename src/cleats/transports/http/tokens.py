"""Tokens of the API: the file that says what each may do, and whose token a request brings.

The file is TOML. It holds no token, only the SHA-256 of each, so that who reads it cannot use it:

    [[token]]
    name = "ci"
    sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    toolsets = ["code"]            # all that are served, when left out
    repositories = ["/srv/repos"]  # the server's own and those of `http_roots`, when left out
    per_minute = 120               # requests; any number, when left out
    burst = 20                     # how many of them at once; `per_minute`, when left out

A plain hash will do, because tokens are made by us from 256 random bits: there is nothing to guess.
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

PREFIX = "cleats_"
"""What our tokens begin with, so that a scanner finds one that was committed by mistake."""

_NAME = "^[A-Za-z0-9_.@-]{1,64}$"

_SCHEMA = {
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
                    "name": {"type": "string", "pattern": _NAME},
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
class Token:
    """What one caller may do. None is no limit but the server's own."""

    name: str = ""
    sha256: str = ""
    toolsets: tuple[str, ...] | None = None
    repositories: tuple[Path, ...] | None = None
    per_minute: float | None = None
    burst: int | None = None


SINGLE = "http_token"
"""The name of the token that is a setting of its own."""

ANYONE = Token()
"""The caller of a server without tokens."""


def is_name(text: str) -> bool:
    """Whether a token may be called so."""
    return re.fullmatch(_NAME, text) is not None and text != SINGLE


def hashed(token: str | bytes) -> str:
    """What the file has for a token."""
    return sha256(token.encode() if isinstance(token, str) else token).hexdigest()


def fresh() -> str:
    """A token that nobody has."""
    return PREFIX + token_urlsafe(32)


def entry(token: Token) -> str:
    """A token as the file has it."""
    lines = ["[[token]]", f'name = "{token.name}"', f'sha256 = "{token.sha256}"']
    if token.toolsets is not None:
        lines.append(f"toolsets = {_list(token.toolsets)}")
    if token.repositories is not None:
        lines.append(f"repositories = {_list(map(str, token.repositories))}")
    if token.per_minute is not None:
        lines.append(f"per_minute = {token.per_minute:g}")
    if token.burst is not None:
        lines.append(f"burst = {token.burst}")
    return "\n".join(lines) + "\n"


def _list(texts: Any) -> str:
    quoted = ('"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"' for each in texts)
    return f"[{', '.join(quoted)}]"


def configured(single: str, file: str, served: Sequence[str]) -> tuple[Token, ...]:
    """Every token that opens the server; none when everybody may come in.

    Raises:
        SettingError: the file cannot be read or is not what it should be, names a toolset that is
            not among `served`, or others than its owner can write it.
    """
    own = [Token(name=SINGLE, sha256=hashed(single))] if single else []
    return (*own, *_read(Path(file).expanduser().absolute(), served)) if file else tuple(own)


def _read(path: Path, served: Sequence[str]) -> list[Token]:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            given = tomllib.load(file)
    except OSError as error:
        raise SettingError(f"http_tokens: cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"http_tokens: {path} is no TOML: {error}") from None
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SettingError(f"http_tokens: others can write {path}; run: chmod go-w {path}")
    if (wrong := _wrong(given)) is not None:
        raise SettingError(f"http_tokens: {path}: {wrong}")
    tokens = [_token(row) for row in given["token"]]
    _check(path, tokens, served)
    return tokens


def _wrong(given: Mapping[str, Any]) -> str | None:
    try:
        found = Validator(_SCHEMA).violations(given)
    except (TypeError, ValueError):  # TOML has dates, JSON does not
        return "there is a value that no entry can have"
    return f"{found[0].path or 'the file'}: {found[0].message}" if found else None


def _token(row: Mapping[str, Any]) -> Token:
    toolsets, repositories = row.get("toolsets"), row.get("repositories")
    return Token(
        name=row["name"],
        sha256=row["sha256"],
        toolsets=None if toolsets is None else tuple(toolsets),
        repositories=None
        if repositories is None
        else tuple(Path(each).expanduser().resolve() for each in repositories),
        per_minute=row.get("per_minute"),
        burst=row.get("burst"),
    )


def _check(path: Path, tokens: Sequence[Token], served: Sequence[str]) -> None:
    names = [token.name for token in tokens]
    for name in {name for name in names if names.count(name) > 1 or name == SINGLE}:
        raise SettingError(f"http_tokens: {path}: the name {name!r} is taken")
    hashes = [token.sha256 for token in tokens]
    if len(set(hashes)) < len(hashes):
        raise SettingError(f"http_tokens: {path}: two names have the same token")
    for name in {each for token in tokens for each in token.toolsets or ()} - set(served):
        raise SettingError(f"http_tokens: {path}: no toolset {name!r} is served")


def bearer(tokens: Sequence[Token], header: str) -> Token | None:
    """Whose token an Authorization header has; None when it is nobody's.

    Every entry is compared, and each comparison takes as long for any wrong token.
    """
    scheme, _, given = header.partition(" ")
    # Headers are read as Latin-1; the bytes are what the caller sent.
    digest = hashed(given.strip().encode("latin-1", "replace")).encode()
    found = None
    for token in tokens:
        if hmac.compare_digest(digest, token.sha256.encode()):
            found = token
    return found if scheme.lower() == "bearer" else None
