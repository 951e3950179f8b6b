"""Front matter that fits its section: our own keys, and those that the site's pages all have."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

_LIKE_TITLE = frozenset(
    {"linktitle", "link_title", "seotitle", "seo_title", "head_title", "heading"}
)
_LIKE_DESCRIPTION = frozenset({"summary", "head_description", "abstract", "subtitle", "excerpt"})
_DATES = frozenset({"date", "lastmod", "publishdate", "publish_date", "updated", "created"})
_OURS = ("title", "description", "weight")
_ADDRESS = frozenset({"url", "slug", "permalink", "aliases"})
"""Keys that move a page. Ours is served where its file says, so they are filled with that."""


def front_matter(
    page: Mapping[str, Any], given: Mapping[str, Any], contract: Mapping[str, Any]
) -> dict[str, Any]:
    """Make the front matter of a planned page.

    `given` comes from its template and stays. Keys that the site requires are added: with the value
    that nearly all pages share, or with one that follows from the page. `weight` and `description`
    are kept only where the section knows them, or knows no front matter at all.
    """
    known = {*contract.get("required_keys", ()), *contract.get("optional_keys", ())}
    front = {
        key: value
        for key, value in {**given, "weight": page["weight"]}.items()
        if not known or key in known or key == "title" or key not in _OURS
    }
    defaults = contract.get("default_values", {})
    for key in contract.get("required_keys", ()):
        if key not in front:
            kind = contract.get("key_types", {}).get(key, "unknown")
            front[key] = _value(key, kind, page, defaults)
    ordered = [key for key in _OURS if key in front]
    return {key: front[key] for key in [*ordered, *sorted(front.keys() - set(ordered))]}


def _value(key: str, kind: str, page: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    name = key.lower()
    own: dict[str, Any] = {
        "draft": False,
        "url": page["url_path"],
        "permalink": page["url_path"],
        "slug": page["url_path"].rstrip("/").rsplit("/", 1)[-1],
        "aliases": [],
        "lang": page["locale"],
        "language": page["locale"],
        "locale": page["locale"],
        "family": page["family"],
        "product": page["family"],
        "platform": page["platform"],
        "keywords": list(page["keywords"]),
        "tags": list(page["keywords"]),
    }
    if name in _LIKE_TITLE:
        return page["title"]
    if name in _LIKE_DESCRIPTION:
        return page["purpose"]
    if name in _DATES:
        return dt.date.fromisoformat(page["date"])
    if name in own and (kind != "string" or isinstance(own[name], str)):
        return (
            ", ".join(own[name]) if kind == "string" and isinstance(own[name], list) else own[name]
        )
    if key in defaults:
        return defaults[key]
    return {
        "string": page["title"],
        "integer": page["weight"],
        "number": page["weight"],
        "boolean": False,
        "date": dt.date.fromisoformat(page["date"]),
        "array_string": list(page["keywords"]),
        "object": {},
    }.get(kind, page["title"])
