"""Fixes for front matter: all keys that can be kept are kept, as they were written.

A value comes from the draft, then from the other pages of the section, then from the plan. A key
that none of them has is left alone.
"""

import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.fixes.model import FixCase, FixResult
from cleats.toolsets.launch.gates.front_matter import has_type
from cleats.toolsets.launch.patching.patches import set_front_matter_keys
from cleats.toolsets.launch.site import pages

_YAML_KEY_PATTERN = re.compile(r"^[A-Za-z_][\w.-]*\s*:")
_FRONT_MATTER_KINDS = {"---": "yaml", "+++": "toml"}


def fix_missing_keys(case: FixCase) -> FixResult:
    front = case.file.front
    missing_keys = [key for key in _list_required_keys(case) if key not in front]
    return _update_keys(case, {key: value for key in missing_keys if (value := _choose_value(case, key)) is not None})


def fix_key_types(case: FixCase) -> FixResult:
    types = _read_contract(case).get("key_types", {}) | {"title": "string"}
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
    is_required = "draft" in _list_required_keys(case)
    return None if case.text is None else set_front_matter_keys(case.text, {"draft": False if is_required else None})


def fix_missing_front_matter(case: FixCase) -> FixResult:
    values = {key: value for key in _list_required_keys(case) if (value := _choose_value(case, key)) is not None}
    has_front_matter = case.file.page is not None and case.file.page.front_kind
    if case.text is None or "title" not in values or has_front_matter:
        return None
    return pages.render_page(values, case.text)


def fix_invalid_front_matter(case: FixCase) -> FixResult:
    """Keep the keys that can be read, drop what cannot, and fill in what is required."""
    text = (case.text or "").removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n")
    if _FRONT_MATTER_KINDS.get(lines[0].strip()) != "yaml":
        return case.draft
    close = next((number for number, line in enumerate(lines[1:], start=1) if line.strip() == "---"), None)
    if close is None:
        return case.draft
    readable_lines = _keep_readable_keys(lines[1:close])
    repaired_text = "\n".join(["---", *readable_lines, *lines[close:]])
    front = pages.parse_page(repaired_text).front
    missing_keys = [key for key in _list_required_keys(case) if key not in front]
    return set_front_matter_keys(
        repaired_text, {key: value for key in missing_keys if (value := _choose_value(case, key)) is not None}
    )


def _keep_readable_keys(lines: list[str]) -> list[str]:
    """Return the lines of the keys that parse separately, without duplicates, as written."""
    chunks: list[list[str]] = []
    for line in lines:
        if _YAML_KEY_PATTERN.match(line) or not chunks:
            chunks.append([line])
        else:
            chunks[-1].append(line)
    readable_lines: list[str] = []
    for chunk in chunks:
        try:
            pages.parse_page("\n".join(["---", *readable_lines, *chunk, "---", ""]))
        except pages.FrontMatterError:
            continue
        readable_lines.extend(chunk)
    return readable_lines


def _update_keys(case: FixCase, changes: Mapping[str, Any]) -> FixResult:
    return set_front_matter_keys(case.text, changes) if case.text is not None and changes else None


def _read_contract(case: FixCase) -> Mapping[str, Any]:
    sections = case.site.load_document("frontmatter_contract.json").get("sections", {})
    rules: Mapping[str, Any] = sections.get(case.file.section, {})
    return rules


def _list_required_keys(case: FixCase) -> list[str]:
    other_keys = sorted({*_read_contract(case).get("required_keys", ())} - {"title"})
    return ["title", *other_keys]


def _choose_value(case: FixCase, key: str) -> Any:
    """Return the value that a key should have, or None when it is unknown."""
    rules = _read_contract(case)
    kind = rules.get("key_types", {}).get(key, "unknown")
    draft_front = case.drafted_file.front if case.drafted_file else {}
    plan = case.file.plan
    planned = {
        "title": plan.get("title"),
        "linktitle": plan.get("title"),
        "description": plan.get("purpose"),
        "summary": plan.get("purpose"),
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


FRONT_MATTER_FIXES = {
    "GATE_FRONTMATTER_KEY_MISSING": fix_missing_keys,
    "GATE_FRONTMATTER_KEY_TYPE": fix_key_types,
    "GATE_FRONTMATTER_DRAFT": fix_draft_flag,
    "GATE_FRONTMATTER_MISSING": fix_missing_front_matter,
    "GATE_FRONTMATTER_INVALID": fix_invalid_front_matter,
}
