"""The settings that an operator can change, each with a name, a type and a default.

The order of precedence is command line, environment, `.cleats.toml` in the repository, the user's file. The command
line reads them; here they are only checked and merged.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin

from msgspec import Struct
from msgspec.structs import replace

from cleats.settings.schema import DEFINITIONS_BY_TABLE
from cleats.settings.schema import Settings as Settings

N = TypeVar("N", int, float)
SettingsT = TypeVar("SettingsT", bound=Settings)


class SettingError(ValueError):
    """A setting has an invalid value; the message says where the value came from."""


class Setting(Struct, frozen=True):
    """The definition of a setting, without its value."""

    name: str
    kind: Any
    """The type of its value."""
    default: Any
    about: str
    least: int
    variable: str
    """The name of its environment variable."""
    private: bool
    group: str
    """The field of `Settings` that holds its group; empty for a setting of the server."""
    field: str
    """Its name in the group."""

    @property
    def kind_text(self) -> str:
        """The type for the documentation."""
        if get_origin(self.kind) is Literal:
            return " or ".join(f"`{option}`" for option in get_args(self.kind))
        return _find_kind(self.kind).word

    @property
    def default_text(self) -> str:
        """The default for the documentation; empty if the setting is."""
        if isinstance(self.default, tuple):
            return ",".join(map(str, self.default))
        return "" if self.default in ("", Path(), {}) else str(self.default)


_GROUP_PREFIXES: Final = {"assets": "", "http": "http_", "code": "", "skills": "skill_", "launch": "launch_"}
"""The prefix that the fields of a group have outside."""


def _list_settings(struct: type[Struct], group: str = "") -> list[Setting]:
    rows = iter(DEFINITIONS_BY_TABLE[struct])
    settings: list[Setting] = []
    for field in struct.__struct_fields__:
        kind = struct.__annotations__[field]
        if kind in DEFINITIONS_BY_TABLE:
            settings += _list_settings(kind, field)
            continue
        row, name = next(rows), _GROUP_PREFIXES.get(group, "") + field
        variable = row.env or f"CLEATS_{name.upper()}"
        settings.append(Setting(name, kind, row.default, row.about, row.least, variable, row.private, group, field))
    return settings


SETTINGS_BY_NAME: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _list_settings(Settings)}
"""All settings by their flat names, in the order of the tables."""


def make_settings(**values: Any) -> Settings:
    """Make settings from flat names, such as `launch_hugo`; the others have their defaults."""
    return replace_settings(Settings(), **values)


def replace_settings(settings: SettingsT, **values: Any) -> SettingsT:
    """Return the settings with other values, which have flat names."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        setting = SETTINGS_BY_NAME[name]
        if setting.group:
            group = fields.get(setting.group, getattr(settings, setting.group))
            fields[setting.group] = replace(group, **{setting.field: value})
        else:
            fields[name] = value
    return replace(settings, **fields)


def get_setting(settings: Settings, name: str) -> Any:
    """Return the value of a setting by its flat name."""
    setting = SETTINGS_BY_NAME[name]
    return getattr(getattr(settings, setting.group) if setting.group else settings, setting.field)


class SettingsWithEnvironment(Settings, frozen=True, kw_only=True):
    """Settings with the environment they came from, for programs that have to run in it.

    The environment is not a setting: only the command line sets it. Users take the variables they need.
    """

    environ: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"SettingsWithEnvironment(environ of {len(self.environ)} variables)"  # some of it is secret


def add_environment(settings: Settings, environ: Mapping[str, str]) -> SettingsWithEnvironment:
    """Return the settings with the environment they came from."""
    values = {field: getattr(settings, field) for field in Settings.__struct_fields__}
    return SettingsWithEnvironment(**values, environ=environ)


def get_environment(settings: Settings) -> Mapping[str, str]:
    """Return the environment of the settings; empty if they were created without one."""
    return settings.environ if isinstance(settings, SettingsWithEnvironment) else {}


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
    return f"{source}: unknown setting {name!r}" + (f"; did you mean {suggestions[0]!r}?" if suggestions else "")


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
        raise ValueError(f"cannot expand the home folder in {raw!r}: no such user") from None


def _parse_integer(raw: object) -> int:
    number = _parse_number(raw, int)
    if number != _parse_number(raw, float):
        raise ValueError(f"expected a whole number, not {raw!r}")
    return number


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
    return {str(name): _parse_number(value, float) for name, value in raw.items()}


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
    float: _SettingKind("seconds", lambda raw: _parse_number(raw, float)),
    str: _SettingKind("text", _parse_text),
    Path: _SettingKind("folder", _parse_folder),
    Mapping: _SettingKind("name=seconds", _parse_seconds_by_name),
    tuple[str, ...]: _SettingKind("list, with commas", _parse_words),
    tuple[Path, ...]: _SettingKind("folders, with commas", lambda raw: tuple(map(_parse_folder, _parse_words(raw)))),
}
"""The types that a setting can have, other than one of a few words."""
