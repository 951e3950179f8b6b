"""Pages from templates: Markdown with tokens, filled with the blocks that have evidence.

A token is `__UPPER_SNAKE__`. Alone on its line it stands for a block of text, within a line for a
few words. Tokens without a value leave no trace: a line with an empty token is removed, and so is a
heading under which every token is empty. So a template can offer everything that could be said
about a product, and a page states only what has evidence.

The base templates are next to this module; a profile's own template with the same name takes
precedence.
"""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cleats.system import front_matter
from cleats.toolsets.launch.drafting.page_context import PageContext
from cleats.toolsets.launch.drafting.tasks import list_omitted_tasks
from cleats.toolsets.launch.drafting.token_renderers import TOKEN_RENDERERS
from cleats.toolsets.launch.site import claim_markers, pages

TOKEN_PATTERN = re.compile(r"__([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)__")
BASE_TEMPLATES_DIR = Path(__file__).parent / "templates"

_HEADING_PATTERN = re.compile(r"^(#{2,6})\s+(.*)$")


@dataclass(frozen=True, slots=True)
class PageTemplate:
    """One template: its name, its front matter and its text."""

    name: str
    front: Mapping[str, Any]
    body: str

    def fill_front(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Return the front matter with its values, without keys whose token is empty."""
        front: dict[str, Any] = {}
        for key, value in self.front.items():
            if not isinstance(value, str):
                front[key] = value
            elif all(values[token] for token in TOKEN_PATTERN.findall(value)):
                front[key] = TOKEN_PATTERN.sub(lambda match: values[match.group(1)], value)
        return front

    def fill_body(self, values: Mapping[str, str]) -> str:
        """Return the text with its values, without empty parts.

        Raises:
            KeyError: A token is unknown.
        """
        sections = _drop_empty_sections(_split_sections(self.body.split("\n")), values)
        filled_lines = [
            TOKEN_PATTERN.sub(lambda match: values[match.group(1)], line)
            for section in sections
            for line in section
            if all(values[token] for token in TOKEN_PATTERN.findall(line))
        ]
        return _collapse_blank_lines("\n".join(filled_lines)).strip("\n") + "\n"


def find_template(
    section: str, slug: str, role: str, *, folder: Path, locale: str, variant: str
) -> PageTemplate | None:
    """Find the template of a page by its slug, else by its role; the profile's come first.

    The variant `name.rich.md` takes precedence over `name.md` if the launch has that tier.
    Languages other than English have only the templates of the profile.
    """
    names = [f"{section}/{slug}", slug, f"{section}/{role}", role]
    roots = [folder / locale, *([folder, BASE_TEMPLATES_DIR] if locale == "en" else [])]
    for name in names:
        for root in roots:
            for suffix in (f".{variant}.md", ".md"):
                file = root / f"{name}{suffix}"
                if file.is_file():
                    page = front_matter.parse_page(file.read_text(encoding="utf-8"))
                    return PageTemplate(f"{name}{suffix}", page.front, page.body)
    return None


def _collapse_blank_lines(text: str) -> str:
    """Remove the gaps that empty tokens left; blank lines in code are kept."""
    code_line_numbers = pages.find_code_lines(text)
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line or number in code_line_numbers or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines)


def _split_sections(lines: Sequence[str]) -> list[list[str]]:
    """Return each heading with the text directly below it; the first section has no heading."""
    sections: list[list[str]] = [[]]
    for line in lines:
        if _HEADING_PATTERN.match(line):
            sections.append([])
        sections[-1].append(line)
    return sections


def _drop_empty_sections(sections: Sequence[list[str]], values: Mapping[str, str]) -> list[list[str]]:
    """Remove sections whose tokens are all empty, and headings with nothing below them."""
    remaining: list[list[str]] = []
    following_level = 0
    for section in reversed(sections):
        tokens = [token for line in section[1:] for token in TOKEN_PATTERN.findall(line)]
        heading_tokens = TOKEN_PATTERN.findall(section[0]) if section else []
        has_no_values = bool(tokens) and not any(values[token] for token in tokens)
        heading = _HEADING_PATTERN.match(section[0]) if section else None
        level = len(heading.group(1)) if heading else 0
        is_empty = (has_no_values or not any(line.strip() for line in section[1:])) and following_level <= level
        if not level or (all(values[token] for token in heading_tokens) and not is_empty):
            remaining.insert(0, section)
            following_level = level
    return remaining


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
    omitted: Mapping[str, str] = field(default_factory=dict)
    """The headings that the page leaves out, with the reasons."""


MAX_FITTING_ATTEMPTS = 5
"""Times that a page which is too long is written again with less room."""

FRAME_LINES = 12
"""Lines of a page around its text and its evidence: the front matter, and the frame of the list."""


def write_page(template: PageTemplate, context: PageContext) -> WrittenPage:
    """Fill a template for one page, with less detail if it is longer than the budget of the run allows."""
    written = _fill_page(template, context)
    max_lines = context.max_lines
    for _ in range(MAX_FITTING_ATTEMPTS):
        excess = _count_lines(written) - context.max_lines
        if excess <= 0:
            break
        max_lines = max(0, max_lines - 2 * excess)
        written = _fill_page(template, replace(context, max_lines=max_lines))
    return written


def _count_lines(written: WrittenPage) -> int:
    return written.body.count("\n") + len(written.claim_ids) + FRAME_LINES


def _fill_page(template: PageTemplate, context: PageContext) -> WrittenPage:
    used_tokens = TOKEN_PATTERN.findall("\n".join([template.body, *map(str, template.front.values())]))
    values = {name: TOKEN_RENDERERS[name](context) for name in dict.fromkeys(used_tokens)}
    front = template.fill_front(values)
    purpose = str(front.pop("purpose", front["description"]))
    body = template.fill_body(values)
    ids_by_code = {item.code: item.snippet_id for item in context.material.snippets}
    shown_codes = [fence.code.rstrip("\n") for fence in pages.list_code_blocks(body)]
    return WrittenPage(
        title=str(front["title"]),
        purpose=purpose,
        body=body,
        headings=tuple(item.text for item in pages.list_headings(body) if item.level == 2),
        claim_ids=tuple(dict.fromkeys(item.claim_id for item in claim_markers.list_claim_markers(body))),
        snippet_ids=tuple(dict.fromkeys(ids_by_code[code] for code in shown_codes if code in ids_by_code)),
        front=front,
        omitted=_explain_omissions(template, context, body),
    )


def _explain_omissions(template: PageTemplate, context: PageContext, body: str) -> dict[str, str]:
    """Return the headings of a template, and the tasks, that a page leaves out, with the reasons."""
    shown_titles = {item.text for item in pages.list_headings(body)}
    omitted: dict[str, str] = {}
    for section in _split_sections(template.body.split("\n")):
        heading = _HEADING_PATTERN.match(section[0]) if section else None
        tokens = [token for line in section[1:] for token in TOKEN_PATTERN.findall(line)]
        if heading and tokens and not TOKEN_PATTERN.search(heading[2]) and heading[2] not in shown_titles:
            names = ", ".join(token.lower().replace("_", " ") for token in tokens)
            omitted[heading[2]] = f"The repository has no material for it ({names})."
    return omitted | (list_omitted_tasks(context) if "__WORKFLOWS__" in template.body else {})


_TITLE_KEYS = frozenset({"linktitle", "link_title", "seotitle", "seo_title", "head_title", "heading"})
_DESCRIPTION_KEYS = frozenset({"summary", "head_description", "abstract", "subtitle", "excerpt"})
_DATE_KEYS = frozenset({"date", "lastmod", "publishdate", "publish_date", "updated", "created"})
_STANDARD_KEYS = ("title", "description", "weight")


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
    date, address, keywords = dt.date.fromisoformat(page["date"]), page["url_path"], list(page["keywords"])
    page_values: dict[str, Any] = {
        "draft": False,
        **dict.fromkeys(("url", "permalink"), address),
        "slug": address.rstrip("/").rsplit("/", 1)[-1],
        "aliases": [],
        "platform": page["platform"],
        **dict.fromkeys(("lang", "language", "locale"), page["locale"]),
        **dict.fromkeys(("family", "product"), page["family"]),
        **dict.fromkeys(("keywords", "tags"), keywords),
    }
    for names, value in ((_TITLE_KEYS, page["title"]), (_DESCRIPTION_KEYS, page["purpose"]), (_DATE_KEYS, date)):
        if name in names:
            return value
    if name in page_values and (kind != "string" or isinstance(page_values[name], str)):
        return page_values[name]
    if key in defaults:
        return defaults[key]
    numbers = dict.fromkeys(("integer", "number"), page["weight"])
    return {**numbers, "boolean": False, "date": date, "array_string": keywords, "object": {}}.get(kind, page["title"])
