"""What a Hugo site says about itself in its configuration files. Hugo is not run."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from cleats.toolsets.launch.source import tables
from cleats.toolsets.launch.source.tree import Tree

_TOP: Final = re.compile(r"(hugo|config)\.(toml|ya?ml|json)")
_FOLDER: Final = re.compile(r"config/[^/]+/[^/]+\.(toml|ya?ml|json)")
_MATRIX: Final = re.compile(r"configs/(?:[^/]+/)?[^/]+\.(toml|ya?ml|json)")
_NO_FAMILY: Final = frozenset({"home", "page", "common"})
_PARTS: Final = frozenset(
    {"languages", "permalinks", "outputs", "taxonomies", "params", "menus", "module", "markup"}
)
"""In a configuration folder a file of this name holds the section of that name."""


@dataclass(frozen=True, slots=True)
class HugoConfig:
    """The configuration files, and the settings of the site as a whole."""

    files: tuple[str, ...]
    matrix: tuple[tuple[str, str, str], ...]
    """Subdomain, family, file: the builds of a site that has one configuration for each."""
    settings: Mapping[str, Any]
    unreadable: tuple[str, ...]
    sources: tuple[str, ...]


def read(tree: Tree) -> HugoConfig:
    """Find and read them; one that does not parse is named and left out."""
    top = [path for path in tree.paths if _TOP.fullmatch(path)]
    # Hugo takes the first of its own order and ignores the others.
    order = ("hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json", "config.toml", "config.yaml")
    top.sort(key=lambda path: order.index(path) if path in order else len(order))
    folder = [path for path in tree.paths if _FOLDER.fullmatch(path)]
    builds = [path for path in tree.paths if _MATRIX.fullmatch(path)]
    settings: dict[str, Any] = {}
    sources: list[str] = []
    unreadable: list[str] = []
    defaults = [path for path in folder if path.startswith("config/_default/")]
    whole = sorted(defaults, key=lambda path: (PurePosixPath(path).stem not in _MAIN, path))
    for path in [*top[:1], *whole, *([] if top or defaults else builds)]:
        document = _load(tree, path)
        if document is None:
            unreadable.append(path)
            continue
        stem = PurePosixPath(path).stem.lower()
        if path.startswith("config/") and stem.partition(".")[0] in _PARTS:
            name, _, language = stem.partition(".")
            inner = {name: document}
            document = {"languages": {language: inner}} if language else inner
        settings = _merged(settings, _lower(document))
        sources.append(path)
    return HugoConfig(
        tuple(sorted({*top, *folder, *builds})),
        tuple(sorted(_build(path) for path in builds if _is_build(path))),
        settings,
        tuple(unreadable),
        tuple(sources),
    )


def settings(tree: Tree, path: str = "") -> Mapping[str, Any]:
    """The settings of one build of the site, or of the site as a whole; top-level keys lower case.

    A file of the build matrix stands for itself; any other is part of the whole.
    """
    config = read(tree)
    if path not in {build for _, _, build in config.matrix}:
        return config.settings
    own: dict[str, Any] = _lower(_load(tree, path) or {})
    return own


def facts(config: HugoConfig) -> dict[str, Any]:
    """The facts that decide what address a page gets, as the artifact."""
    settings = config.settings
    default = str(settings.get("defaultcontentlanguage") or "en")
    languages = settings.get("languages")
    names = sorted(languages) if isinstance(languages, Mapping) and languages else [default.lower()]
    return {
        "schema_version": "1.0",
        "languages": names,
        "default_language": default.lower(),
        "default_language_in_subdir": settings.get("defaultcontentlanguageinsubdir") is True,
        "permalinks": _mapping(settings.get("permalinks")),
        "outputs": _mapping(settings.get("outputs")),
        "taxonomies": _mapping(
            settings.get("taxonomies", {"category": "categories", "tag": "tags"})
        ),
        "source_files": sorted(config.sources),
        "unreadable_files": sorted(config.unreadable),
    }


def context(tree: Tree, config: HugoConfig) -> dict[str, Any]:
    """The files and builds, as the `hugo` part of the site context."""
    return {
        "config_root": _root_of(config),
        "config_files": [
            {
                "path": path,
                "sha256": hashlib.sha256(tree.read(path)).hexdigest(),
                "bytes": tree.size(path),
                "ext": PurePosixPath(path).suffix,
            }
            for path in config.files
        ],
        "build_matrix": [
            {"subdomain": subdomain, "family": family, "config_path": path}
            for subdomain, family, path in config.matrix
        ],
    }


_MAIN: Final = frozenset({"hugo", "config"})


def _root_of(config: HugoConfig) -> str:
    for folder in ("configs", "config"):
        if any(path.startswith(f"{folder}/") for path in config.files):
            return folder
    return "."


def _load(tree: Tree, path: str) -> dict[str, Any] | None:
    text = tree.text(path)
    try:
        return None if text is None else tables.parse(path, text)
    except ValueError:
        return None


def _is_build(path: str) -> bool:
    return PurePosixPath(path).stem.lower() not in _NO_FAMILY


def _build(path: str) -> tuple[str, str, str]:
    """`configs/<subdomain>/<family>.toml`; `configs/<subdomain>.toml` is one for all families."""
    place = PurePosixPath(path)
    if len(place.parts) == 2:
        return place.stem, "", path
    return place.parts[1], place.stem, path


def _lower(value: Any) -> Any:
    """Hugo's own keys know no case; those below are names and stay."""
    return {str(key).lower(): inner for key, inner in value.items()}


def _merged(base: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in more.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, Mapping)
        merged[key] = _merged(old, value) if both and isinstance(old, dict) else value
    return merged


def _mapping(value: Any) -> dict[str, Any]:
    """A table as plain JSON; dates and the like become text."""
    plain = json.loads(json.dumps(value, default=str)) if isinstance(value, Mapping) else {}
    return plain if isinstance(plain, dict) else {}
