"""Read the settings: the environment, the repository's file, the user's file."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path

from cleats.settings import SettingError, Settings, Source, resolve, variable

FILE = ".cleats.toml"


def load(environ: Mapping[str, str], start: Path | None = None) -> Settings:
    """The settings as they stand for this process.

    Raises:
        SettingError: a value or a file cannot be used; the message says which.
    """
    home = Path(environ.get("HOME") or Path.home())
    sources = [_environment(environ)]
    repository = next(_repository_files(start or Path.cwd()), None)
    if repository is not None:
        sources.append(Source(str(repository), _toml(repository), trusted=False))
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "cleats" / "config.toml"
    if user.is_file():
        sources.append(Source(str(user), _toml(user)))
    settings = resolve(sources)
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "cleats"
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "cleats"
    return replace(
        settings,
        cache_dir=settings.cache_dir if settings.cache_dir != Path() else cache,
        data_dir=settings.data_dir if settings.data_dir != Path() else data,
    )


def _environment(environ: Mapping[str, str]) -> Source:
    known = {variable(item): item.name for item in fields(Settings)}
    values = {known[name]: value for name, value in environ.items() if name in known and value}
    return Source("environment", values)


def _repository_files(start: Path) -> Iterator[Path]:
    """`.cleats.toml` from here up to the root of the repository, and not beyond it."""
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            yield folder / FILE
        if (folder / ".git").exists():
            return


def _toml(path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(f"{path}: {error}") from None
