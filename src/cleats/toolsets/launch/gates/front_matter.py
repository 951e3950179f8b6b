"""Each page must have front matter that Hugo can read, with the keys and types of its section."""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cleats.toolsets.launch.gates.model import (
    Gate,
    GateMessage,
    IssueDraft,
    LaunchSite,
    PageFile,
    make_blocker,
    make_error,
)
from cleats.toolsets.launch.site import pages

TYPE_DESCRIPTIONS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "date": "a date",
    "array_string": "a list of texts",
    "object": "a mapping",
}


def check_front_matter(site: LaunchSite) -> Iterator[GateMessage]:
    sections = site.load_document("frontmatter_contract.json").get("sections", {})
    for file in site.files:
        try:
            page = pages.parse_page(file.text)
        except pages.FrontMatterError as parse_error:
            yield make_blocker(
                "GATE_FRONTMATTER_INVALID",
                f"the front matter cannot be read: {parse_error.message}",
                file.path,
                parse_error.line,
            )
            continue
        if not page.front_kind:
            yield make_error("GATE_FRONTMATTER_MISSING", "the page has no front matter", file.path, 1)
            continue
        yield from _check_keys(file, page.front, sections.get(file.section, {}))


def _check_keys(file: PageFile, front: Mapping[str, Any], rules: Mapping[str, Any]) -> Iterator[IssueDraft]:
    for key in sorted({"title", *rules.get("required_keys", ())} - front.keys()):
        message = f"the key {key!r} is missing from the front matter"
        yield make_error("GATE_FRONTMATTER_KEY_MISSING", message, file.path, 1)
    title = front.get("title")
    if "title" in front and not (isinstance(title, str) and title.strip()):
        yield make_error("GATE_FRONTMATTER_KEY_TYPE", "the title is not a text", file.path, 1)
    if front.get("draft") is True:
        message = "the page is a draft, so the site would leave it out"
        yield make_error("GATE_FRONTMATTER_DRAFT", message, file.path, 1)
    types = rules.get("key_types", {})
    for key in sorted(front.keys() & types.keys() - {"title"}):
        if not has_type(front[key], types[key]):
            message = f"the key {key!r} is not {TYPE_DESCRIPTIONS[types[key]]}"
            yield make_error("GATE_FRONTMATTER_KEY_TYPE", message, file.path, 1)


def has_type(value: Any, type_name: str) -> bool:
    """Return whether a value has the type that the contract names; unknown types admit all."""
    return TYPE_CHECKS[type_name](value) if type_name in TYPE_CHECKS else True


def _is_date(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        dt.datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


TYPE_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "date": lambda value: isinstance(value, dt.date) or _is_date(value),
    "array_string": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "object": lambda value: isinstance(value, dict),
}

GATE = Gate(
    name="front_matter",
    purpose=__doc__,
    check=check_front_matter,
    reads_pages=True,
    local_seconds=60.0,
    strict_seconds=120.0,
)
