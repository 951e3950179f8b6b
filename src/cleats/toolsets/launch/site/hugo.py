"""The configuration of a Hugo site, read from its files. Hugo is not run."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from cleats.toolsets.launch.source.checkout import safe_parsing
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

_TOP_CONFIG_PATTERN: Final = re.compile(r"(hugo|config)\.(toml|ya?ml|json)")
_FOLDER_CONFIG_PATTERN: Final = re.compile(r"config/[^/]+/[^/]+\.(toml|ya?ml|json)")
_BUILD_CONFIG_PATTERN: Final = re.compile(r"configs/(?:[^/]+/)?[^/]+\.(toml|ya?ml|json)")
_NON_FAMILY_STEMS: Final = frozenset({"home", "page", "common"})
_CONFIG_SECTIONS: Final = frozenset(
    {"languages", "permalinks", "outputs", "taxonomies", "params", "menus", "module", "markup"}
)
"""In a configuration folder, a file with one of these names holds the section of that name."""


@dataclass(frozen=True, slots=True)
class HugoConfig:
    """The configuration files, and the merged settings of the whole site."""

    files: tuple[str, ...]
    matrix: tuple[tuple[str, str, str], ...]
    """Subdomain, family and file of each build, for a site with one configuration per build."""
    settings: Mapping[str, Any]
    unreadable: tuple[str, ...]
    sources: tuple[str, ...]


def read_hugo_config(tree: CheckoutTree) -> HugoConfig:
    """Find and read the configuration files; one that cannot be parsed is listed and skipped."""
    top = [path for path in tree.paths if _TOP_CONFIG_PATTERN.fullmatch(path)]
    # Hugo reads the first file in this order and ignores the others.
    order = ("hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json", "config.toml", "config.yaml")
    top.sort(key=lambda path: order.index(path) if path in order else len(order))
    folder = [path for path in tree.paths if _FOLDER_CONFIG_PATTERN.fullmatch(path)]
    builds = [path for path in tree.paths if _BUILD_CONFIG_PATTERN.fullmatch(path)]
    settings: dict[str, Any] = {}
    sources: list[str] = []
    unreadable: list[str] = []
    defaults = [path for path in folder if path.startswith("config/_default/")]
    ordered_defaults = sorted(defaults, key=lambda path: (PurePosixPath(path).stem not in _MAIN_STEMS, path))
    for path in [*top[:1], *ordered_defaults, *([] if top or defaults else builds)]:
        document = _load_document(tree, path)
        if document is None:
            unreadable.append(path)
            continue
        stem = PurePosixPath(path).stem.lower()
        if path.startswith("config/") and stem.partition(".")[0] in _CONFIG_SECTIONS:
            name, _, language = stem.partition(".")
            section = {name: document}
            document = {"languages": {language: section}} if language else section
        settings = _merge_settings(settings, lower_keys(document))
        sources.append(path)
    family_builds = [path for path in builds if PurePosixPath(path).stem.lower() not in _NON_FAMILY_STEMS]
    return HugoConfig(
        tuple(sorted({*top, *folder, *builds})),
        tuple(sorted(map(_parse_build_path, family_builds))),
        settings,
        tuple(unreadable),
        tuple(sources),
    )


def read_hugo_settings(tree: CheckoutTree, path: str = "") -> Mapping[str, Any]:
    """Return the settings of one build of the site, or of the whole site, with lower-case keys.

    A file of the build matrix has its own settings; any other file is part of the whole site. Only
    the top-level keys are lower-cased.
    """
    config = read_hugo_config(tree)
    if path not in {build for _, _, build in config.matrix}:
        return config.settings
    build_settings: dict[str, Any] = lower_keys(_load_document(tree, path) or {})
    return build_settings


def derive_hugo_facts(config: HugoConfig) -> dict[str, Any]:
    """Return the settings that decide the URL of a page, as the artifact."""
    settings = config.settings
    default = str(settings.get("defaultcontentlanguage") or "en")
    languages = settings.get("languages")
    names = sorted(languages) if isinstance(languages, Mapping) and languages else [default.lower()]
    tables = {"taxonomies": {"category": "categories", "tag": "tags"}, **settings}
    return {
        "schema_version": "1.0",
        "languages": names,
        "default_language": default.lower(),
        "default_language_in_subdir": settings.get("defaultcontentlanguageinsubdir") is True,
        **{name: _convert_to_json(tables.get(name)) for name in ("permalinks", "outputs", "taxonomies")},
        "source_files": sorted(config.sources),
        "unreadable_files": sorted(config.unreadable),
    }


def build_hugo_context(tree: CheckoutTree, config: HugoConfig) -> dict[str, Any]:
    """Return the files and builds, as the `hugo` part of the site context."""
    folders = {PurePosixPath(path).parts[0] for path in config.files}
    return {
        "config_root": next((folder for folder in ("configs", "config") if folder in folders), "."),
        "config_files": [
            {
                "path": path,
                "sha256": hashlib.sha256(tree.read_bytes(path)).hexdigest(),
                "bytes": tree.file_size(path),
                "ext": PurePosixPath(path).suffix,
            }
            for path in config.files
        ],
        "build_matrix": [
            {"subdomain": subdomain, "family": family, "config_path": path} for subdomain, family, path in config.matrix
        ],
    }


_MAIN_STEMS: Final = frozenset({"hugo", "config"})


def _load_document(tree: CheckoutTree, path: str) -> dict[str, Any] | None:
    text = tree.read_text(path)
    try:
        return None if text is None else safe_parsing.parse_document(path, text)
    except ValueError:
        return None


def _parse_build_path(path: str) -> tuple[str, str, str]:
    """Parse `configs/<subdomain>/<family>.toml`; `configs/<subdomain>.toml` is for all families."""
    pure_path = PurePosixPath(path)
    return (pure_path.stem, "", path) if len(pure_path.parts) == 2 else (pure_path.parts[1], pure_path.stem, path)


def lower_keys(value: Any, *, deep: bool = False) -> Any:
    """Lower-case the top-level keys, which Hugo reads in any case, or with `deep` all keys; inner ones may be names."""
    if isinstance(value, Mapping):
        return {str(key).lower(): lower_keys(inner, deep=True) if deep else inner for key, inner in value.items()}
    return [lower_keys(item, deep=True) for item in value] if isinstance(value, list) else value


def _merge_settings(base: dict[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in override.items():
        old = merged.get(key)
        merged[key] = _merge_settings(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged


def _convert_to_json(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(value, default=str)) if isinstance(value, Mapping) else {}
    return plain
