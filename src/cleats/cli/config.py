"""Read the settings: the environment, the repository's file, the user's file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cleats.settings import (
    ENVIRONMENT,
    TABLE,
    SettingError,
    Settings,
    Source,
    Surrounded,
    resolve,
)

FILE = ".cleats.toml"
PREFIX = "CLEATS_"


def load(environ: Mapping[str, str], start: Path | None = None) -> Settings:
    """The settings as they stand for this process.

    Raises:
        SettingError: a value or a file cannot be used; the message says which.
    """
    start = start or _here()
    settings = resolve(sources(environ, start))
    home = _home(environ)
    defaults: dict[str, Any] = {
        "cache_dir": _base(environ, "XDG_CACHE_HOME", home / ".cache"),
        "data_dir": _base(environ, "XDG_DATA_HOME", home / ".local" / "share"),
        "home": home,
        "config_home": home / ".config",
        "claude_dir": home / ".claude",
        "project_dir": start,
    }
    unset = {name: path for name, path in defaults.items() if getattr(settings, name) == Path()}
    values = {name: getattr(settings, name) for name in TABLE}
    return Surrounded(**{**values, **unset}, environ=environ)


def sources(environ: Mapping[str, str], start: Path | None = None) -> list[Source]:
    """Where settings come from here, the strongest first; a file that is not there is left out.

    Raises:
        SettingError: a file cannot be read.
    """
    found = [_environment(environ)]
    try:
        repository = repository_file(start or _here())
        user = user_file(environ) if user_file(environ).is_file() else None
    except PermissionError as error:
        raise SettingError(
            f"{error.filename}: cannot be looked at; go to a folder that you may enter"
        ) from None
    if repository is not None:
        found.append(Source(str(repository), _toml(repository), trusted=False))
    if user is not None:
        found.append(Source(str(user), _toml(user)))
    return found


def user_file(environ: Mapping[str, str]) -> Path:
    """The user's own file, whether or not it exists."""
    return _base(environ, "XDG_CONFIG_HOME", _home(environ) / ".config") / "config.toml"


def repository_file(start: Path) -> Path | None:
    """The nearest `.cleats.toml` from here up to the root of the repository.

    Outside a repository only the folder itself counts: a file above it could be anyone's.
    """
    folders = list(_within_repository(start)) or [start]
    return next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)


def strays(environ: Mapping[str, str]) -> list[str]:
    """Variables that look like settings and are none: most likely misspelt."""
    known = {setting.variable for setting in TABLE.values()}
    return sorted(name for name in environ if name.startswith(PREFIX) and name not in known)


def _within_repository(start: Path) -> Iterator[Path]:
    chain = [start, *start.parents]
    for depth, folder in enumerate(chain):
        if (folder / ".git").exists():
            yield from chain[: depth + 1]
            return


def _environment(environ: Mapping[str, str]) -> Source:
    known = {setting.variable: setting.name for setting in TABLE.values()}
    values = {known[name]: value for name, value in environ.items() if name in known and value}
    return Source(ENVIRONMENT, values)


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise SettingError("the current folder is gone; change to one that is there") from None


def _base(environ: Mapping[str, str], name: str, default: Path) -> Path:
    """An XDG folder of ours; the standard says that a relative one is to be ignored."""
    folder = Path(environ.get(name, ""))
    return (folder if folder.is_absolute() else default) / "cleats"


def _toml(path: Path) -> Mapping[str, object]:
    import tomllib  # noqa: PLC0415 - few have a file, and every command starts here

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(f"{path}: {error}") from None
