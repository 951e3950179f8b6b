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

    A configured folder may also be a clone that contains the real one; the schemas of a clone imply its examples.

    Raises:
        SettingError: A configured folder does not exist.
    """
    schemas = _configured_folder("SYN_SCHEMAS_DIR", settings.assets.schemas_dir)
    examples = _configured_folder("SYN_EXAMPLES_DIR", settings.assets.examples_dir)
    submodule = Path(SUBMODULE_PATH)
    schema_folder = _find_in_clone(schemas, SCHEMA_FOLDERS) or schemas or _find_folder(submodule, SCHEMA_FOLDERS)
    example_folder = _find_in_clone(examples, EXAMPLE_FOLDERS) or examples
    example_folder = example_folder or _find_in_clone(schemas, EXAMPLE_FOLDERS)
    example_folder = example_folder or _find_folder(submodule, EXAMPLE_FOLDERS)
    return AssetSources(_create_root(schema_folder), _create_root(example_folder))


def _configured_folder(variable: str, text: str) -> Path | None:
    if not text:
        return None
    folder = Path(text).expanduser()
    if not folder.is_dir():
        raise SettingError(f"{variable}: the folder {text!r} does not exist")
    return folder


def _find_in_clone(folder: Path | None, names: tuple[str, ...]) -> Path | None:
    """Return the folder in a clone; None for a folder that has schemas itself, or has none below it.

    An empty file is no schema: the official repository has one at its top.
    """
    if folder is None or not any((folder / name).is_dir() for name in SCHEMA_FOLDERS):
        return None
    has_schemas = any(file.is_file() and file.stat().st_size for file in folder.glob(f"*{SCHEMA_SUFFIXES[0]}"))
    return None if has_schemas else _find_folder(folder, names)


def _find_folder(folder: Path, names: tuple[str, ...]) -> Path | None:
    direct, versioned = (folder / name for name in names)
    if direct.is_dir():
        return direct
    versions = [child for child in versioned.glob("*") if child.is_dir()] if versioned.is_dir() else []

    def version_key(version: Path) -> tuple[list[int], str]:
        return [int(part) for part in version.name.split(".") if part.isdecimal()], version.name

    return max(versions, key=version_key, default=None)


def _create_root(folder: Path | None) -> AssetRoot | None:
    return None if folder is None else AssetRoot(folder.as_posix(), folder.resolve())
