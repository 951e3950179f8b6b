"""Each page must have front matter that the site can read, with the keys and types of its section."""

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any

from cleats.system import front_matter
from cleats.system.front_matter import set_front_matter_keys
from cleats.toolsets.launch.gates.model import FixCase, FixResult, Gate, GateMessage, IssueDraft, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite, PageFile

_YAML_KEY_PATTERN = re.compile(r"^[A-Za-z_][\w.-]*\s*:")


def check_front_matter(site: LaunchSite) -> Iterator[GateMessage]:
    for file in site.files:
        try:
            page = front_matter.parse_page(file.text)
        except front_matter.FrontMatterError as parse_error:
            message = f"the front matter cannot be read: {parse_error.message}"
            yield INVALID_FRONT_MATTER.draft(message, file.path, parse_error.line)
            continue
        if not page.front_kind and not site.kind.needs_front_matter:
            continue
        if not page.front_kind:
            yield MISSING_FRONT_MATTER.draft("the page has no front matter", file.path, 1)
            continue
        rules = site.front_matter_contracts.get(file.section, {})
        yield from _check_keys(file, page.front, rules, {"title"} if site.kind.needs_front_matter else set())


def _check_keys(
    file: PageFile, front: Mapping[str, Any], rules: Mapping[str, Any], own_keys: Collection[str]
) -> Iterator[IssueDraft]:
    for key in sorted({*own_keys, *rules.get("required_keys", ())} - front.keys()):
        yield MISSING_KEY.draft(f"the key {key!r} is missing from the front matter", file.path, 1)
    title = front.get("title")
    if "title" in front and not (isinstance(title, str) and title.strip()):
        yield WRONG_TYPE.draft("the title is not a text", file.path, 1)
    if front.get("draft") is True:
        yield DRAFT_PAGE.draft("the page is a draft, so the site would leave it out", file.path, 1)
    types = rules.get("key_types", {})
    for key in sorted(front.keys() & types.keys() - {"title"}):
        if not has_type(front[key], types[key]):
            yield WRONG_TYPE.draft(f"the key {key!r} is not {KEY_TYPES[types[key]][0]}", file.path, 1)


def has_type(value: Any, type_name: str) -> bool:
    """Return whether a value has the type that the contract names; unknown types admit all."""
    return KEY_TYPES[type_name][1](value) if type_name in KEY_TYPES else True


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, dt.date) or bool(dt.datetime.fromisoformat(value))
    except (TypeError, ValueError):
        return False


KEY_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a text", lambda value: isinstance(value, str)),
    "integer": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "number": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "date": ("a date", _is_date),
    "array_string": (
        "a list of texts",
        lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    ),
    "object": ("a mapping", lambda value: isinstance(value, dict)),
}
"""The description and the check of each type of a key."""

# The fixes keep all keys that can be kept, as they were written. A value comes from the draft, then from the other
# pages of the section, then from the plan. A key that none of them has is left alone.


def fix_key_types(case: FixCase) -> FixResult:
    contract = case.site.front_matter_contracts.get(case.file.section, {})
    types = contract.get("key_types", {}) | {"title": "string"}
    changes = {}
    for key, value in case.file.front.items():
        if key not in types or (has_type(value, types[key]) and value != ""):
            continue
        replacement = _coerce_value(value, types[key])
        if replacement is None:
            replacement = _choose_value(case, key)
        if replacement is not None and has_type(replacement, types[key]):
            changes[key] = replacement
    return _update_keys(case, changes)


def fix_draft_flag(case: FixCase) -> FixResult:
    return _update_keys(case, {"draft": False if "draft" in _list_required_keys(case) else None})


def fix_missing_front_matter(case: FixCase) -> FixResult:
    values = _choose_values(case)
    has_front_matter = case.file.page is not None and case.file.page.front_kind
    if case.existing_text is None or "title" not in values or has_front_matter:
        return None
    return front_matter.render_page(values, case.text)


def fix_invalid_front_matter(case: FixCase) -> FixResult:
    """Keep the keys that can be read, drop what cannot, and fill in what is required."""
    lines = case.text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    close = next((number for number, line in enumerate(lines[1:], start=1) if line.strip() == "---"), None)
    if lines[0].strip() != "---" or close is None:
        return case.draft
    repaired_text = "\n".join(["---", *_keep_readable_keys(lines[1:close]), *lines[close:]])
    front = front_matter.parse_page(repaired_text).front
    return set_front_matter_keys(repaired_text, _choose_values(case, absent_from=front))


def _keep_readable_keys(lines: list[str]) -> list[str]:
    """Return the lines of the keys that parse separately, without duplicates, as written."""
    starts = [number for number, line in enumerate(lines) if _YAML_KEY_PATTERN.match(line) or number == 0]
    chunks = [lines[start:end] for start, end in pairwise([*starts, len(lines)])]
    readable_lines: list[str] = []
    for chunk in chunks:
        try:
            front_matter.parse_page("\n".join(["---", *readable_lines, *chunk, "---", ""]))
        except front_matter.FrontMatterError:
            continue
        readable_lines.extend(chunk)
    return readable_lines


def _update_keys(case: FixCase, changes: Mapping[str, Any]) -> FixResult:
    return set_front_matter_keys(case.text, changes) if case.existing_text is not None and changes else None


def _list_required_keys(case: FixCase) -> list[str]:
    required_keys = case.site.front_matter_contracts.get(case.file.section, {}).get("required_keys", ())
    return ["title", *sorted({*required_keys} - {"title"})]


def _choose_values(case: FixCase, absent_from: Collection[str] = ()) -> dict[str, Any]:
    """Return the known values of the required keys that some front matter lacks."""
    missing_keys = [key for key in _list_required_keys(case) if key not in absent_from]
    return {key: value for key in missing_keys if (value := _choose_value(case, key)) is not None}


def _choose_value(case: FixCase, key: str) -> Any:
    rules = case.site.front_matter_contracts.get(case.file.section, {})
    kind = rules.get("key_types", {}).get(key, "unknown")
    draft_front = case.drafted_file.front if case.drafted_file else {}
    plan = case.file.plan
    planned = {
        **dict.fromkeys(("title", "linktitle"), plan.get("title")),
        **dict.fromkeys(("description", "summary"), plan.get("purpose")),
        "keywords": list(plan.get("seo_keywords", ())) or None,
        "url": plan.get("url_path"),
        "draft": False,
    }
    for source in (draft_front, rules.get("default_values", {}), planned):
        value = source.get(key, source.get(key.lower()))
        if value not in (None, "") and has_type(value, kind):
            return value
    return None


def _coerce_value(value: Any, kind: str) -> Any:
    if kind == "integer" and isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value.strip()):
        return int(value)
    if kind == "boolean" and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if kind == "array_string" and isinstance(value, str) and value.strip():
        return [value.strip()]
    return None


INVALID_FRONT_MATTER = IssueKind(
    "GATE_FRONTMATTER_INVALID", "blocker", "Write front matter that parses.", fix_invalid_front_matter
)
MISSING_FRONT_MATTER = IssueKind(
    "GATE_FRONTMATTER_MISSING", "error", "Begin the page with front matter.", fix_missing_front_matter
)
MISSING_KEY = IssueKind(
    "GATE_FRONTMATTER_KEY_MISSING",
    "error",
    "Add the key; the section's other pages have it.",
    lambda case: _update_keys(case, _choose_values(case, absent_from=case.file.front)),
)
WRONG_TYPE = IssueKind(
    "GATE_FRONTMATTER_KEY_TYPE", "error", "Give the key a value of the type that other pages have.", fix_key_types
)
DRAFT_PAGE = IssueKind("GATE_FRONTMATTER_DRAFT", "error", "Remove the key `draft`.", fix_draft_flag)

GATE = Gate("front_matter", __doc__, check_front_matter, reads_pages=True)
