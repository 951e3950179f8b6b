"""Where schemas and examples are: what is configured, else the submodule, else nowhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cleats.settings import SettingError, Settings
from cleats.toolsets.assets.naming import SUFFIXES

SUBMODULE: Final = "libs/synesthetic-schemas"
"""The clone that a project carries; looked for where the server was started."""

SCHEMAS: Final = ("jsonschema", "docs/schema")
EXAMPLES: Final = ("examples", "docs/examples")
"""Where a clone keeps them, the stronger first; the second of each has a folder per version."""


@dataclass(frozen=True, slots=True)
class Root:
    """A folder, as it was named and as it is."""

    shown: str
    folder: Path

    def path(self, inside: str) -> str:
        """A path in it the way listings write it, with `/` on every platform."""
        return f"{self.shown}/{inside}"


@dataclass(frozen=True, slots=True)
class Sources:
    """The two folders; None where there is none."""

    schemas: Root | None
    examples: Root | None


def locate(settings: Settings) -> Sources:
    """Find the folders.

    A folder that is configured may also be a clone that holds the real one; the schemas of a
    clone bring its examples along.

    Raises:
        SettingError: a configured folder is not there.
    """
    schemas = _configured("SYN_SCHEMAS_DIR", settings.schemas_dir)
    examples = _configured("SYN_EXAMPLES_DIR", settings.examples_dir)
    submodule = Path(SUBMODULE)
    return Sources(
        schemas=_root(_schemas_in(schemas)) if schemas else _root(_first(submodule, SCHEMAS)),
        examples=_root(_examples_in(examples))
        if examples
        else _root(_first(schemas, EXAMPLES) if schemas and _is_clone(schemas) else None)
        or _root(_first(submodule, EXAMPLES)),
    )


def _configured(variable: str, text: str) -> Path | None:
    if not text:
        return None
    folder = Path(text).expanduser()
    if not folder.is_dir():
        raise SettingError(f"{variable}: there is no folder {text!r}")
    return folder


def _schemas_in(folder: Path) -> Path:
    nested = _first(folder, SCHEMAS) if _is_clone(folder) else None
    return nested or folder


def _examples_in(folder: Path) -> Path:
    nested = _first(folder, EXAMPLES) if _is_clone(folder) else None
    return nested or folder


def _is_clone(folder: Path) -> bool:
    """Whether the schemas are below this folder rather than in it."""
    in_it = any(folder.glob(f"*{SUFFIXES[0]}"))
    return not in_it and any((folder / name).is_dir() for name in SCHEMAS)


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    direct, versioned = (folder / name for name in names)
    if direct.is_dir():
        return direct
    versions = [each for each in versioned.glob("*") if each.is_dir()] if versioned.is_dir() else []
    return max(versions, key=_version, default=None)


def _version(folder: Path) -> tuple[list[int], str]:
    return [int(part) for part in folder.name.split(".") if part.isdecimal()], folder.name


def _root(folder: Path | None) -> Root | None:
    return None if folder is None else Root(folder.as_posix(), folder.resolve())
