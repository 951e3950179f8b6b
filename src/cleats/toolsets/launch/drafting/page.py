"""Writes one page: fills its template and collects what the text contains."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cleats.toolsets.launch.drafting import token_renderers
from cleats.toolsets.launch.drafting.page_context import PageContext
from cleats.toolsets.launch.drafting.page_templates import PageTemplate
from cleats.toolsets.launch.site import pages


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """The text of a page, and what it contains."""

    title: str
    purpose: str
    """The purpose of the page, as shown in links from other pages."""
    body: str
    headings: tuple[str, ...]
    claim_ids: tuple[str, ...]
    snippet_ids: tuple[str, ...]
    front: Mapping[str, Any]


def write_page(template: PageTemplate, context: PageContext) -> WrittenPage:
    """Fill a template for one page."""
    values = token_renderers.render_tokens(context)
    front = template.fill_front(values)
    purpose = str(front.pop("purpose", front["description"]))
    body = template.fill_body(values)
    snippet_ids_by_code = {item.code: item.snippet_id for item in context.material.snippets}
    shown_codes = [fence.code.rstrip("\n") for fence in pages.list_code_blocks(body)]
    return WrittenPage(
        title=str(front["title"]),
        purpose=purpose,
        body=body,
        headings=tuple(item.text for item in pages.list_headings(body) if item.level == 2),
        claim_ids=tuple(dict.fromkeys(item.claim_id for item in pages.list_claim_markers(body))),
        snippet_ids=tuple(
            dict.fromkeys(snippet_ids_by_code[code] for code in shown_codes if code in snippet_ids_by_code)
        ),
        front=front,
    )


_TITLE_KEYS = frozenset({"linktitle", "link_title", "seotitle", "seo_title", "head_title", "heading"})
_DESCRIPTION_KEYS = frozenset({"summary", "head_description", "abstract", "subtitle", "excerpt"})
_DATE_KEYS = frozenset({"date", "lastmod", "publishdate", "publish_date", "updated", "created"})
_STANDARD_KEYS = ("title", "description", "weight")
_ADDRESS_KEYS = frozenset({"url", "slug", "permalink", "aliases"})
"""Keys that change the address of a page; they are set to the address of its file."""


def build_front_matter(
    page: Mapping[str, Any], template_front: Mapping[str, Any], contract: Mapping[str, Any]
) -> dict[str, Any]:
    """Build the front matter of a planned page.

    `template_front` comes from the template and is kept. Keys that the site requires are added:
    with the value that nearly all pages share, or with one derived from the page. `weight` and
    `description` are kept only if the section uses them, or has no known front matter.
    """
    known_keys = {*contract.get("required_keys", ()), *contract.get("optional_keys", ())}
    front = {
        key: value
        for key, value in {**template_front, "weight": page["weight"]}.items()
        if not known_keys or key in known_keys or key == "title" or key not in _STANDARD_KEYS
    }
    defaults = contract.get("default_values", {})
    for key in contract.get("required_keys", ()):
        if key not in front:
            kind = contract.get("key_types", {}).get(key, "unknown")
            front[key] = _choose_value(key, kind, page, defaults)
    ordered = [key for key in _STANDARD_KEYS if key in front]
    return {key: front[key] for key in [*ordered, *sorted(front.keys() - set(ordered))]}


def _choose_value(key: str, kind: str, page: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    name = key.lower()
    page_values: dict[str, Any] = {
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
    if name in _TITLE_KEYS:
        return page["title"]
    if name in _DESCRIPTION_KEYS:
        return page["purpose"]
    if name in _DATE_KEYS:
        return dt.date.fromisoformat(page["date"])
    if name in page_values and (kind != "string" or isinstance(page_values[name], str)):
        return (
            ", ".join(page_values[name])
            if kind == "string" and isinstance(page_values[name], list)
            else page_values[name]
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
