"""The folders of schemas and examples: configured, else in the submodule, else none."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cleats.settings import SettingError, Settings
from cleats.toolsets.assets.schema_names import SCHEMA_SUFFIXES

SUBMODULE_PATH: Final = "libs/synesthetic-schemas"
"""The clone that a project contains; relative to the server's working directory."""

SCHEMA_FOLDERS: Final = ("jsonschema", "docs/schema")
EXAMPLE_FOLDERS: Final = ("examples", "docs/examples")
"""The folders in a clone, the stronger first; the second of each has a folder per version."""


@dataclass(frozen=True, slots=True)
class AssetRoot:
    """A folder, with its configured and its resolved path."""

    display_path: str
    folder: Path

    def format_path(self, relative_path: str) -> str:
        """Return a path in it as listings show it, with `/` on every platform."""
        return f"{self.display_path}/{relative_path}"


@dataclass(frozen=True, slots=True)
class AssetSources:
    """The two folders; None where there is none."""

    schemas: AssetRoot | None
    examples: AssetRoot | None


def locate_sources(settings: Settings) -> AssetSources:
    """Find the folders.

    A configured folder may also be a clone that contains the real one; the schemas of a clone imply
    its examples.

    Raises:
        SettingError: A configured folder does not exist.
    """
    schemas = _configured_folder("SYN_SCHEMAS_DIR", settings.assets.schemas_dir)
    examples = _configured_folder("SYN_EXAMPLES_DIR", settings.assets.examples_dir)
    submodule = Path(SUBMODULE_PATH)
    return AssetSources(
        schemas=_create_root(_find_schemas(schemas))
        if schemas
        else _create_root(_find_folder(submodule, SCHEMA_FOLDERS)),
        examples=_create_root(_find_examples(examples))
        if examples
        else _create_root(_find_folder(schemas, EXAMPLE_FOLDERS) if schemas and _is_clone(schemas) else None)
        or _create_root(_find_folder(submodule, EXAMPLE_FOLDERS)),
    )


def _configured_folder(variable: str, text: str) -> Path | None:
    if not text:
        return None
    folder = Path(text).expanduser()
    if not folder.is_dir():
        raise SettingError(f"{variable}: there is no folder {text!r}")
    return folder


def _find_schemas(folder: Path) -> Path:
    nested = _find_folder(folder, SCHEMA_FOLDERS) if _is_clone(folder) else None
    return nested or folder


def _find_examples(folder: Path) -> Path:
    nested = _find_folder(folder, EXAMPLE_FOLDERS) if _is_clone(folder) else None
    return nested or folder


def _is_clone(folder: Path) -> bool:
    """Return whether the schemas are below this folder rather than in it.

    An empty file is no schema: the official repository has one at its top.
    """
    has_schemas = any(file.is_file() and file.stat().st_size for file in folder.glob(f"*{SCHEMA_SUFFIXES[0]}"))
    return not has_schemas and any((folder / name).is_dir() for name in SCHEMA_FOLDERS)


def _find_folder(folder: Path, names: tuple[str, ...]) -> Path | None:
    direct, versioned = (folder / name for name in names)
    if direct.is_dir():
        return direct
    versions = (
        [version_folder for version_folder in versioned.glob("*") if version_folder.is_dir()]
        if versioned.is_dir()
        else []
    )
    return max(versions, key=_version_key, default=None)


def _version_key(folder: Path) -> tuple[list[int], str]:
    return [int(part) for part in folder.name.split(".") if part.isdecimal()], folder.name


def _create_root(folder: Path | None) -> AssetRoot | None:
    return None if folder is None else AssetRoot(folder.as_posix(), folder.resolve())
