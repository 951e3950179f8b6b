"""What front matter the pages of a site have, learned from the pages that are there."""

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from cleats.toolsets.launch import pages
from cleats.toolsets.launch.source.tree import Tree

SAMPLE: Final = 50
"""Pages looked at in a section, the first by path."""

MOST: Final = 0.9
"""The share of pages that makes a date required, or a value the default."""


def contract(tree: Tree, roots: Mapping[str, str], site_url: str, site_sha: str) -> dict[str, Any]:
    """The contract of every section that has a page with front matter, as the artifact."""
    sections = {name: _section(tree, root) for name, root in sorted(roots.items())}
    return {
        "schema_version": "1.0",
        "site_repo_url": site_url,
        "site_sha": site_sha,
        "sections": {name: found for name, found in sections.items() if found},
    }


def kind_of(value: Any) -> str:
    """The type of a value, in the words of the contract."""
    if isinstance(value, str):
        return "date" if _is_date(value) else "string"
    if isinstance(value, list):
        strings = value and all(isinstance(each, str) for each in value)
        return "array_string" if strings else "unknown"
    # In this order: a boolean is an integer too, a moment is a date too.
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (dt.date, "date"))
    named = (name for kind, name in (*kinds, (dict, "object")) if isinstance(value, kind))
    return next(named, "unknown")


def _section(tree: Tree, root: str) -> dict[str, Any]:
    below = [path for path in tree.below(root) if path.endswith(".md")] if root else []
    fronts = [front for path in below[:SAMPLE] if (front := _front(tree, path))]
    if not fronts:
        return {}
    counted: Counter[str] = Counter(key for front in fronts for key in front)
    required = sorted(key for key in counted if _is_required(key, counted[key], len(fronts)))
    values = {key: [front[key] for front in fronts if key in front] for key in counted}
    found: dict[str, Any] = {
        "sample_size": len(fronts),
        "required_keys": required,
        "optional_keys": sorted(set(counted) - set(required)),
        "key_types": {key: _kind(values[key]) for key in sorted(counted)},
    }
    found["default_values"] = dict(_defaults(values, len(fronts)))
    return found


def _front(tree: Tree, path: str) -> dict[str, Any]:
    try:
        return pages.parse(tree.text(path) or "").front
    except pages.FrontMatterError:
        return {}


def _is_required(key: str, count: int, pages_seen: int) -> bool:
    """A key that all pages have; a date also when nearly all have it."""
    return count == pages_seen or (key == "date" and count >= MOST * pages_seen)


def _kind(values: Sequence[Any]) -> str:
    kinds = {kind_of(value) for value in values}
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _defaults(values: Mapping[str, Sequence[Any]], pages_seen: int) -> Iterable[tuple[str, Any]]:
    """A value that nearly all pages share. One page alone has no habits."""
    for key in sorted(values):
        counted = Counter(json.dumps(value, sort_keys=True, default=str) for value in values[key])
        text, count = counted.most_common(1)[0]
        if pages_seen > 1 and count >= MOST * pages_seen:
            yield key, json.loads(text)


def _is_date(text: str) -> bool:
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) >= len("2026-01-01")
