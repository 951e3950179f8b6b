"""The settings that an operator can change, each with a name, a type and a default.

The order of precedence is command line, environment, `.cleats.toml` in the repository, the user's file. The command
line reads them; here they are only checked and merged.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from cleats.settings.schema import (
    SETTINGS_BY_NAME,
    Setting,
    Settings,
    SettingsWithEnvironment,
    add_environment,
    get_environment,
    get_setting,
    make_settings,
    replace_settings,
)

__all__ = [
    "ENVIRONMENT_SOURCE",
    "SETTINGS_BY_NAME",
    "Setting",
    "SettingError",
    "SettingRow",
    "Settings",
    "SettingsSource",
    "SettingsWithEnvironment",
    "add_environment",
    "get_environment",
    "get_setting",
    "list_setting_rows",
    "make_settings",
    "replace_settings",
    "resolve_settings",
]


N = TypeVar("N", int, float)


class SettingError(ValueError):
    """A setting has an invalid value; the message says where the value came from."""


class SettingRow(NamedTuple):
    """A setting as the documentation shows it."""

    name: str
    env: str
    kind: str
    default: str
    about: str
    private: bool


def list_setting_rows() -> list[SettingRow]:
    """Return the table of settings for the documentation."""
    rows = []
    for item in SETTINGS_BY_NAME.values():
        kind, default = _describe_kind(item.kind), _format_default(item.default)
        rows.append(SettingRow(item.name, item.variable, kind, default, item.about, item.private))
    return rows


ENVIRONMENT_SOURCE = "environment"
"""The name of the source whose settings are environment variables."""


class SettingsSource(NamedTuple):
    """A source of settings; in a list of sources the strongest comes first."""

    name: str
    values: Mapping[str, object]
    trusted: bool = True


def resolve_settings(sources: Iterable[SettingsSource]) -> Settings:
    """Check every source and merge them, taking the strongest value of each setting.

    Raises:
        SettingError: An unknown name, a bad value, or a private setting in a repository's file.
    """
    values: dict[str, Any] = {}
    for source in sources:
        for name, raw in source.values.items():
            setting = SETTINGS_BY_NAME.get(name)
            if setting is None:
                raise SettingError(_describe_unknown_setting(name, source.name))
            if setting.private and not source.trusted:
                raise SettingError(
                    f"{source.name}: {name} cannot be set by a repository; "
                    f"use {setting.variable} or your own configuration file"
                )
            try:
                value = _parse_value(raw, setting.kind, setting.least)
            except ValueError as error:
                is_variable = source.name == ENVIRONMENT_SOURCE
                origin = setting.variable if is_variable else f"{source.name}: {setting.name}"
                raise SettingError(f"{origin}: {error}") from None
            values.setdefault(name, value)
    return make_settings(**values)


def _describe_unknown_setting(name: str, source: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - hardly ever

    suggestions = get_close_matches(name, SETTINGS_BY_NAME, n=1)
    return f"{source}: there is no setting {name!r}" + (f"; did you mean {suggestions[0]!r}?" if suggestions else "")


def _parse_value(raw: object, hint: Any, minimum: int) -> Any:
    if get_origin(hint) is Literal:
        if raw not in (options := get_args(hint)):
            raise ValueError(f"expected one of {', '.join(options)}, not {raw!r}")
        return raw
    value = _find_kind(hint).parse(raw)
    if isinstance(value, int | float) and value < minimum:
        raise ValueError(f"expected at least {minimum}, not {value!r}")
    return value


def _find_kind(hint: Any) -> "_SettingKind":
    return _SETTING_KINDS[hint if hint in _SETTING_KINDS else get_origin(hint)]  # tuples differ by their items


def _parse_text(raw: object) -> str:
    if not isinstance(raw, str):
        raise ValueError(f"expected text, not {raw!r}")  # noqa: TRY004 - the user's error
    return raw


def _parse_folder(raw: object) -> Path:
    try:
        # Absolute now: a server's working folder is whatever its client made it.
        return Path(_parse_text(raw)).expanduser().absolute()
    except RuntimeError:
        raise ValueError(f"nobody here has the home folder of {raw!r}") from None


def _parse_integer(raw: object) -> int:
    number = _parse_number(raw, int)
    if number != _parse_number(raw, float):
        raise ValueError(f"expected a whole number, not {raw!r}")
    return number


def _parse_seconds(raw: object) -> float:
    return _parse_number(raw, float)


def _parse_number(raw: object, kind: Callable[[Any], N]) -> N:
    try:
        value = kind(raw)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a number, not {raw!r}") from None
    if isinstance(raw, bool) or not 0 <= value < float("inf"):
        raise ValueError(f"expected a number that is zero or more, not {raw!r}")
    return value


def _parse_seconds_by_name(raw: object) -> dict[str, float]:
    if isinstance(raw, str):
        pairs = [pair.partition("=") for pair in raw.split(",") if pair.strip()]
        if not all(name.strip() and equals for name, equals, _ in pairs):
            raise ValueError(f"expected name=seconds,…, not {raw!r}")
        raw = {name.strip(): value.strip() for name, _, value in pairs}
    if not isinstance(raw, Mapping):
        raise ValueError(f"expected name=seconds,…, not {raw!r}")  # noqa: TRY004 - the user's error
    return {str(name): _parse_seconds(value) for name, value in raw.items()}


def _parse_words(raw: object) -> tuple[str, ...]:
    parts = raw.split(",") if isinstance(raw, str) else raw
    if not isinstance(parts, list | tuple):
        raise ValueError(f"expected a list, not {raw!r}")  # noqa: TRY004 - the user's error
    return tuple(word for part in parts if (word := _parse_text(part).strip()))


class _SettingKind(NamedTuple):
    word: str
    parse: Callable[[object], Any]


_SETTING_KINDS: Mapping[Any, _SettingKind] = {
    int: _SettingKind("integer", _parse_integer),
    float: _SettingKind("seconds", _parse_seconds),
    str: _SettingKind("text", _parse_text),
    Path: _SettingKind("folder", _parse_folder),
    Mapping: _SettingKind("name=seconds", _parse_seconds_by_name),
    tuple[str, ...]: _SettingKind("list, with commas", _parse_words),
    tuple[Path, ...]: _SettingKind("folders, with commas", lambda raw: tuple(map(_parse_folder, _parse_words(raw)))),
}
"""The types that a setting can have, other than one of a few words."""


def _describe_kind(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(f"`{option}`" for option in get_args(hint))
    return _find_kind(hint).word


def _format_default(default: object) -> str:
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return "" if default in ("", Path(), {}) else str(default)
