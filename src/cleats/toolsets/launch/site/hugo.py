"""The configuration of a Hugo site, read from its files. Hugo is not run."""

import datetime as dt
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from cleats.system import front_matter
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


MAX_SAMPLED_PAGES: Final = 50
"""Pages read per section, the first ones by path."""

MIN_PAGE_SHARE: Final = 0.9
"""The share of pages from which on a date is required, or a value is the default."""


def derive_contract(tree: CheckoutTree, roots: Mapping[str, str], site_url: str, site_sha: str) -> dict[str, Any]:
    """Return the contract of every section that has a page with front matter, as the artifact."""
    sections = {name: _derive_section(tree, root) for name, root in sorted(roots.items())}
    return {
        "schema_version": "1.0",
        "site_repo_url": site_url,
        "site_sha": site_sha,
        "sections": {name: section for name, section in sections.items() if section},
    }


def classify_value(value: Any) -> str:
    """Return the type of a value in the terms of the contract."""
    if isinstance(value, str):
        with suppress(ValueError):
            dt.datetime.fromisoformat(value)
            return "date" if len(value) >= len("2026-01-01") else "string"
        return "string"
    if isinstance(value, list):
        strings = value and all(isinstance(item, str) for item in value)
        return "array_string" if strings else "unknown"
    # The order matters: a bool is also an int, and a datetime is also a date.
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (dt.date, "date"))
    names = (name for kind, name in (*kinds, (dict, "object")) if isinstance(value, kind))
    return next(names, "unknown")


def _derive_section(tree: CheckoutTree, root: str) -> dict[str, Any]:
    page_paths = [path for path in tree.paths_below(root) if path.endswith(".md")] if root else []
    fronts: list[dict[str, Any]] = []
    for path in page_paths[:MAX_SAMPLED_PAGES]:
        with suppress(front_matter.FrontMatterError):
            fronts.append(front_matter.parse_page(tree.read_text(path) or "").front)
    fronts = list(filter(None, fronts))
    if not fronts:
        return {}
    key_counts: Counter[str] = Counter(key for front in fronts for key in front)
    # All pages have a required key; for a date, nearly all do.
    min_counts = {"date": MIN_PAGE_SHARE * len(fronts)}
    required = sorted(key for key, count in key_counts.items() if count >= min_counts.get(key, len(fronts)))
    values = {key: [front[key] for front in fronts if key in front] for key in key_counts}
    return {
        "sample_size": len(fronts),
        "required_keys": required,
        "optional_keys": sorted(set(key_counts) - set(required)),
        "key_types": {key: _classify_values(values[key]) for key in sorted(key_counts)},
        "default_values": dict(_find_defaults(values, len(fronts))),
    }


def _classify_values(values: Sequence[Any]) -> str:
    kinds = {classify_value(value) for value in values}
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _find_defaults(values: Mapping[str, Sequence[Any]], page_count: int) -> Iterable[tuple[str, Any]]:
    """Yield the values that nearly all pages share; a single page proves nothing."""
    for key in sorted(values):
        value_counts = Counter(json.dumps(value, sort_keys=True, default=str) for value in values[key])
        text, count = value_counts.most_common(1)[0]
        if page_count > 1 and count >= MIN_PAGE_SHARE * page_count:
            yield key, json.loads(text)
