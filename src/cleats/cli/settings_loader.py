"""Loading of the settings from the environment, the repository's file and the user's file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cleats.settings import (
    ENVIRONMENT_SOURCE,
    SETTINGS_BY_NAME,
    SettingError,
    Settings,
    SettingsSource,
    add_environment,
    get_setting,
    replace_settings,
    resolve_settings,
)

CONFIG_FILE_NAME = ".cleats.toml"
VARIABLE_PREFIX = "CLEATS_"


def load_settings(environ: Mapping[str, str], start: Path | None = None) -> Settings:
    """Load the settings for this process.

    Raises:
        SettingError: A value or a file cannot be used; the message says which.
    """
    start = start or _current_folder()
    settings = resolve_settings(read_sources(environ, start))
    home = _home_folder(environ)
    defaults: dict[str, Any] = {
        "cache_dir": _xdg_folder(environ, "XDG_CACHE_HOME", home / ".cache"),
        "data_dir": _xdg_folder(environ, "XDG_DATA_HOME", home / ".local" / "share"),
        "home": home,
        "config_home": home / ".config",
        "claude_dir": home / ".claude",
        "project_dir": start,
    }
    unset = {name: path for name, path in defaults.items() if get_setting(settings, name) == Path()}
    return add_environment(replace_settings(settings, **unset), environ)


def read_sources(environ: Mapping[str, str], start: Path | None = None) -> list[SettingsSource]:
    """Read the sources of settings, the strongest first; files that do not exist are skipped.

    Raises:
        SettingError: A file cannot be read.
    """
    config_sources = [_read_environment(environ)]
    try:
        repository = find_repository_config(start or _current_folder())
        user = user_config_path(environ) if user_config_path(environ).is_file() else None
    except PermissionError as error:
        raise SettingError(f"{error.filename}: permission denied; change to a folder that you can read") from None
    if repository is not None:
        config_sources.append(SettingsSource(str(repository), _read_toml(repository), trusted=False))
    if user is not None:
        config_sources.append(SettingsSource(str(user), _read_toml(user)))
    return config_sources


def user_config_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's own file, whether or not it exists."""
    return _xdg_folder(environ, "XDG_CONFIG_HOME", _home_folder(environ) / ".config") / "config.toml"


def find_repository_config(start: Path) -> Path | None:
    """Return the nearest `.cleats.toml` up to the repository's root; outside of one, a file above could be anyone's."""
    ancestors = [start, *start.parents]
    depth = next((depth for depth, folder in enumerate(ancestors) if (folder / ".git").exists()), 0)
    candidates = [folder / CONFIG_FILE_NAME for folder in ancestors[: depth + 1]]
    return next(filter(Path.is_file, candidates), None)


def find_unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the variables that look like settings but are not, most likely because of a typo."""
    known_variables = {setting.variable for setting in SETTINGS_BY_NAME.values()}
    return sorted(name for name in environ if name.startswith(VARIABLE_PREFIX) and name not in known_variables)


def describe_unknown_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence about each variable that looks like a setting but is not, with the nearest one."""
    for name in find_unknown_variables(environ):
        from difflib import get_close_matches  # noqa: PLC0415 - hardly ever

        # Names are compared without the prefix, which would make all variables look alike.
        close_matches = get_close_matches(name.removeprefix(VARIABLE_PREFIX).lower(), SETTINGS_BY_NAME, n=1)
        suggestion = f" Did you mean {SETTINGS_BY_NAME[close_matches[0]].variable}?" if close_matches else ""
        yield f"{name} is not a setting and is ignored.{suggestion}"


def _read_environment(environ: Mapping[str, str]) -> SettingsSource:
    names_by_variable = {setting.variable: setting.name for setting in SETTINGS_BY_NAME.values()}
    values = {names_by_variable[name]: value for name, value in environ.items() if name in names_by_variable and value}
    return SettingsSource(ENVIRONMENT_SOURCE, values)


def _home_folder(environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("HOME") or Path.home())
    if not home.is_absolute():
        raise SettingError(f"HOME is {str(home)!r}, which is not an absolute path; set it to your home folder")
    return home


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise SettingError("the current folder no longer exists; change to another one") from None


def _xdg_folder(environ: Mapping[str, str], name: str, default: Path) -> Path:
    """Return our folder below an XDG folder; the standard says to ignore a relative one."""
    folder = Path(environ.get(name, ""))
    return (folder if folder.is_absolute() else default) / "cleats"


def _read_toml(path: Path) -> Mapping[str, object]:
    import tomllib  # noqa: PLC0415 - few have a file, and every command starts here

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(f"{path}: {error}") from None
