"""Each page has front matter that Hugo reads, with the keys and types its section has."""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cleats.toolsets.launch import pages
from cleats.toolsets.launch.gates.model import Finding, Gate, Said, blocker, error
from cleats.toolsets.launch.gates.site import PageFile, Site

TYPES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "date": "a date",
    "array_string": "a list of texts",
    "object": "a mapping",
}


def check(site: Site) -> Iterator[Said]:
    sections = site.document("frontmatter_contract.json").get("sections", {})
    for file in site.files:
        try:
            page = pages.parse(file.text)
        except pages.FrontMatterError as wrong:
            yield blocker(
                "GATE_FRONTMATTER_INVALID",
                f"the front matter cannot be read: {wrong.message}",
                file.path,
                wrong.line,
            )
            continue
        if not page.front_kind:
            yield error("GATE_FRONTMATTER_MISSING", "the page has no front matter", file.path, 1)
            continue
        yield from _keys(file, page.front, sections.get(file.section, {}))


def _keys(file: PageFile, front: Mapping[str, Any], rules: Mapping[str, Any]) -> Iterator[Finding]:
    for key in sorted({"title", *rules.get("required_keys", ())} - front.keys()):
        message = f"the key {key!r} is missing from the front matter"
        yield error("GATE_FRONTMATTER_KEY_MISSING", message, file.path, 1)
    title = front.get("title")
    if "title" in front and not (isinstance(title, str) and title.strip()):
        yield error("GATE_FRONTMATTER_KEY_TYPE", "the title is not a text", file.path, 1)
    if front.get("draft") is True:
        message = "the page is a draft, so the site would leave it out"
        yield error("GATE_FRONTMATTER_DRAFT", message, file.path, 1)
    types = rules.get("key_types", {})
    for key in sorted(front.keys() & types.keys() - {"title"}):
        if not fits(front[key], types[key]):
            message = f"the key {key!r} is not {TYPES[types[key]]}"
            yield error("GATE_FRONTMATTER_KEY_TYPE", message, file.path, 1)


def fits(value: Any, kind: str) -> bool:
    """Whether a value has the type that the contract names; an unknown type admits all."""
    return KINDS[kind](value) if kind in KINDS else True


def _is_date(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        dt.datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


KINDS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "date": lambda value: isinstance(value, dt.date) or _is_date(value),
    "array_string": lambda value: (
        isinstance(value, list) and all(isinstance(each, str) for each in value)
    ),
    "object": lambda value: isinstance(value, dict),
}

GATE = Gate(
    name="front_matter", purpose=__doc__, check=check, reads_pages=True, local=60.0, strict=120.0
)
