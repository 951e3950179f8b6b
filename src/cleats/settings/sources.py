"""Settings as they are given: where they come from, what counts as a value, what wins."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from cleats.settings.table import TABLE, Setting, Settings

N = TypeVar("N", int, float)


class SettingError(ValueError):
    """A setting has a value that it cannot have; the message says where it came from."""


class Row(NamedTuple):
    """A setting as the documentation shows it."""

    name: str
    env: str
    kind: str
    default: str
    about: str
    private: bool


def rows() -> list[Row]:
    """The table of settings."""
    return [
        Row(
            setting.name,
            setting.variable,
            _kind(setting.kind),
            _shown(setting.default),
            setting.about,
            setting.private,
        )
        for setting in TABLE.values()
    ]


ENVIRONMENT = "environment"
"""The name of the source whose settings are variables."""


class Source(NamedTuple):
    """Where settings were read from, the strongest first in a list of them."""

    name: str
    values: Mapping[str, object]
    trusted: bool = True


def resolve(sources: Iterable[Source]) -> Settings:
    """Check every source and put the strongest value of each setting together.

    Raises:
        SettingError: an unknown name, a bad value, or a private setting in a repository's file.
    """
    chosen: dict[str, Any] = {}
    for source in sources:
        for name, raw in source.values.items():
            setting = TABLE.get(name)
            if setting is None:
                raise SettingError(_unknown(name, source.name))
            if setting.private and not source.trusted:
                raise SettingError(
                    f"{source.name}: {name} cannot be set by a repository; "
                    f"use {setting.variable} or your own configuration file"
                )
            try:
                value = _parse(raw, setting.kind)
                _check_least(value, setting.least)
            except ValueError as error:
                raise SettingError(f"{_where(source, setting)}: {error}") from None
            chosen.setdefault(name, value)
    return Settings(**chosen)


def _where(source: Source, setting: Setting) -> str:
    return setting.variable if source.name == ENVIRONMENT else f"{source.name}: {setting.name}"


def _unknown(name: str, source: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - hardly ever

    near = get_close_matches(name, TABLE, n=1)
    return f"{source}: there is no setting {name!r}" + (
        f"; did you mean {near[0]!r}?" if near else ""
    )


def _parse(raw: object, hint: Any) -> Any:
    if get_origin(hint) is Literal:
        return _one_of(raw, get_args(hint))
    return _KINDS[_of(hint)].parse(raw)


def _of(hint: Any) -> Any:
    """The row of a type; those of `tuple` differ in what is in it."""
    return hint if hint in _KINDS else get_origin(hint)


def _one_of(raw: object, options: tuple[str, ...]) -> str:
    if raw not in options:
        raise ValueError(f"expected one of {', '.join(options)}, not {raw!r}")
    return str(raw)


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise ValueError(f"expected text, not {raw!r}")  # noqa: TRY004 - the user's error
    return raw


def _folder(raw: object) -> Path:
    try:
        # Absolute now: a server's working folder is whatever its client made it.
        return Path(_text(raw)).expanduser().absolute()
    except RuntimeError:
        raise ValueError(f"nobody here has the home folder of {raw!r}") from None


def _integer(raw: object) -> int:
    number = _number(raw, int)
    if number != _number(raw, float):
        raise ValueError(f"expected a whole number, not {raw!r}")
    return number


def _seconds(raw: object) -> float:
    return _number(raw, float)


def _number(raw: object, kind: Callable[[Any], N]) -> N:
    try:
        value = kind(raw)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a number, not {raw!r}") from None
    if isinstance(raw, bool) or not 0 <= value < float("inf"):
        raise ValueError(f"expected a number that is zero or more, not {raw!r}")
    return value


def _by_name(raw: object) -> dict[str, float]:
    if isinstance(raw, str):
        pairs = [pair.partition("=") for pair in raw.split(",") if pair.strip()]
        if not all(name.strip() and equals for name, equals, _ in pairs):
            raise ValueError(f"expected name=seconds,…, not {raw!r}")
        raw = {name.strip(): value.strip() for name, _, value in pairs}
    if not isinstance(raw, Mapping):
        raise ValueError(f"expected name=seconds,…, not {raw!r}")  # noqa: TRY004 - the user's error
    return {str(name): _seconds(value) for name, value in raw.items()}


def _words(raw: object) -> tuple[str, ...]:
    parts = raw.split(",") if isinstance(raw, str) else raw
    if not isinstance(parts, list | tuple):
        raise ValueError(f"expected a list, not {raw!r}")  # noqa: TRY004 - the user's error
    return tuple(word for part in parts if (word := _text(part).strip()))


def _folders(raw: object) -> tuple[Path, ...]:
    return tuple(map(_folder, _words(raw)))


class _Kind(NamedTuple):
    word: str
    parse: Callable[[object], Any]


_KINDS: Mapping[Any, _Kind] = {
    int: _Kind("integer", _integer),
    float: _Kind("seconds", _seconds),
    str: _Kind("text", _text),
    Path: _Kind("folder", _folder),
    Mapping: _Kind("name=seconds", _by_name),
    tuple[str, ...]: _Kind("list, with commas", _words),
    tuple[Path, ...]: _Kind("folders, with commas", _folders),
}
"""What a setting can be, other than one of a few words."""


def _check_least(value: object, least: int) -> None:
    if isinstance(value, int | float) and value < least:
        raise ValueError(f"expected at least {least}, not {value!r}")


def _kind(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(f"`{option}`" for option in get_args(hint))
    return _KINDS[_of(hint)].word


def _shown(default: object) -> str:
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return "" if default in ("", Path(), {}) else str(default)
