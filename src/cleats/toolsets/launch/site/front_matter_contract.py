"""The front matter that the pages of a site have: required keys, types and common values."""

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from cleats.system import front_matter
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

MAX_SAMPLED_PAGES: Final = 50
"""Pages read per section, the first ones by path."""

MIN_PAGE_SHARE: Final = 0.9
"""The share of pages from which on a date is required, or a value is the default."""


def derive_contract(
    tree: CheckoutTree, roots: Mapping[str, str], site_url: str, site_sha: str, *, counts_pages_without: bool = False
) -> dict[str, Any]:
    """Return the contract of every section that has a page with front matter, as the artifact.

    With `counts_pages_without`, for sites that do not need front matter, pages that have none make no key required.
    """
    sections = {name: _derive_section(tree, root, counts_pages_without) for name, root in sorted(roots.items())}
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


def _derive_section(tree: CheckoutTree, root: str, counts_pages_without: bool) -> dict[str, Any]:
    page_paths = [path for path in tree.paths_below(root) if path.endswith(".md")] if root else []
    fronts: list[dict[str, Any]] = []
    for path in page_paths[:MAX_SAMPLED_PAGES]:
        with suppress(front_matter.FrontMatterError):
            fronts.append(front_matter.parse_page(tree.read_text(path) or "").front)
    if not any(fronts):
        return {}
    if not counts_pages_without:
        fronts = list(filter(None, fronts))
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
