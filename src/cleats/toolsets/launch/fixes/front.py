"""Fixes of front matter: every key that can be kept is kept, as it was written.

A value comes from the draft, then from what the section's other pages have, then from the plan.
What none of them knows is left alone.
"""

import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch import pages
from cleats.toolsets.launch.fixes.model import Answer, Case
from cleats.toolsets.launch.gates.front_matter import fits
from cleats.toolsets.launch.patching.front import updated

_KEY = re.compile(r"^[A-Za-z_][\w.-]*\s*:")
_MARKS = {"---": "yaml", "+++": "toml"}


def missing_key(case: Case) -> Answer:
    front = case.file.front
    wanted = [key for key in _required(case) if key not in front]
    return _with(case, {key: value for key in wanted if (value := _value(case, key)) is not None})


def key_type(case: Case) -> Answer:
    types = _contract(case).get("key_types", {}) | {"title": "string"}
    changes = {}
    for key, value in case.file.front.items():
        if key not in types or (fits(value, types[key]) and value != ""):
            continue
        better = _coerced(value, types[key])
        if better is None:
            better = _value(case, key)
        if better is not None and fits(better, types[key]):
            changes[key] = better
    return _with(case, changes)


def is_draft(case: Case) -> Answer:
    required = "draft" in _required(case)
    return None if case.text is None else updated(case.text, {"draft": False if required else None})


def no_front(case: Case) -> Answer:
    values = {key: value for key in _required(case) if (value := _value(case, key)) is not None}
    there = case.file.page is not None and case.file.page.front_kind
    if case.text is None or "title" not in values or there:
        return None
    return pages.render(values, case.text)


def invalid(case: Case) -> Answer:
    """Keep the keys that can be read, drop what cannot, and fill in what is required."""
    text = (case.text or "").removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n")
    if _MARKS.get(lines[0].strip()) != "yaml":
        return case.draft
    close = next((n for n, line in enumerate(lines[1:], start=1) if line.strip() == "---"), None)
    if close is None:
        return case.draft
    kept = _readable(lines[1:close])
    made = "\n".join(["---", *kept, *lines[close:]])
    front = pages.parse(made).front
    wanted = [key for key in _required(case) if key not in front]
    return updated(made, {key: value for key in wanted if (value := _value(case, key)) is not None})


def _readable(lines: list[str]) -> list[str]:
    """The keys that parse by themselves, each once, as they are written."""
    chunks: list[list[str]] = []
    for line in lines:
        if _KEY.match(line) or not chunks:
            chunks.append([line])
        else:
            chunks[-1].append(line)
    kept: list[str] = []
    for chunk in chunks:
        try:
            pages.parse("\n".join(["---", *kept, *chunk, "---", ""]))
        except pages.FrontMatterError:
            continue
        kept.extend(chunk)
    return kept


def _with(case: Case, changes: Mapping[str, Any]) -> Answer:
    return updated(case.text, changes) if case.text is not None and changes else None


def _contract(case: Case) -> Mapping[str, Any]:
    sections = case.site.document("frontmatter_contract.json").get("sections", {})
    rules: Mapping[str, Any] = sections.get(case.file.section, {})
    return rules


def _required(case: Case) -> list[str]:
    rest = sorted({*_contract(case).get("required_keys", ())} - {"title"})
    return ["title", *rest]


def _value(case: Case, key: str) -> Any:
    """What a key should say; None when nobody knows."""
    rules = _contract(case)
    kind = rules.get("key_types", {}).get(key, "unknown")
    drafted = case.drafted.front if case.drafted else {}
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
    for source in (drafted, rules.get("default_values", {}), planned):
        value = source.get(key, source.get(key.lower()))
        if value not in (None, "") and fits(value, kind):
            return value
    return None


def _coerced(value: Any, kind: str) -> Any:
    if kind == "integer" and isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value.strip()):
        return int(value)
    if kind == "boolean" and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if kind == "array_string" and isinstance(value, str) and value.strip():
        return [value.strip()]
    return None


RULES = {
    "GATE_FRONTMATTER_KEY_MISSING": missing_key,
    "GATE_FRONTMATTER_KEY_TYPE": key_type,
    "GATE_FRONTMATTER_DRAFT": is_draft,
    "GATE_FRONTMATTER_MISSING": no_front,
    "GATE_FRONTMATTER_INVALID": invalid,
}
