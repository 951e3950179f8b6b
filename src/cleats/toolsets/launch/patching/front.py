"""Front matter changed key by key: every line that is not about the key stays as it was written.

A page is reviewed as a diff. Reading the values and writing them all back would reorder keys, drop
comments and change quotes, so only the lines of a key are replaced.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch import pages

_CLOSING = {"yaml": "---", "toml": "+++"}


def updated(text: str, updates: Mapping[str, Any]) -> str:
    """Set keys of a page's front matter; None takes a key away.

    A new key is added at the end. A page without front matter gets one in YAML.

    Raises:
        FrontMatterError: what is there cannot be read, or a value has no form in its language.
    """
    page = pages.parse(text)
    if not page.front_kind:
        values = {key: value for key, value in updates.items() if value is not None}
        return pages.render(values, text) if values else text
    if page.front_kind == "json":
        values = {**page.front, **updates}
        kept = {key: value for key, value in values.items() if value is not None}
        return json.dumps(kept, indent=2, ensure_ascii=False) + "\n" + page.body
    lines = text.split("\n")
    close = next(
        number
        for number, line in enumerate(lines[1:], start=1)
        if line.strip() == _CLOSING[page.front_kind]
    )
    front = lines[1:close]
    for key, value in updates.items():
        front = _set(front, page.front_kind, key, value)
    made = "\n".join([lines[0], *front, *lines[close:]])
    pages.parse(made)
    return made


def _set(front: list[str], kind: str, key: str, value: Any) -> list[str]:
    new = [] if value is None else _written(kind, key, value)
    start = next((n for n, line in enumerate(front) if _names(line, kind, key)), None)
    if start is None:
        end = _before_tables(front) if kind == "toml" else len(front)
        return [*front[:end], *new, *front[end:]]
    end = start + 1
    for at, line in enumerate(front[end:], start=end):
        if line.strip() and not _goes_on(line, kind, "\n".join(front[start:at])):
            break
        if line.strip():
            end = at + 1
    return [*front[:start], *new, *front[end:]]


def _names(line: str, kind: str, key: str) -> bool:
    sign = ":" if kind == "yaml" else "="
    name = re.escape(key)
    return re.match(rf"""(?:{name}|"{name}"|'{name}')\s*{sign}""", line) is not None


def _goes_on(line: str, kind: str, so_far: str) -> bool:
    """Whether a line still belongs to the value that began before it."""
    if kind == "yaml":
        # A list may stand at the key's own indentation.
        return line.startswith((" ", "\t", "- ")) or line == "-"
    try:
        pages.parse(f"+++\n{so_far}\n+++\n")
    except pages.FrontMatterError:
        return True
    return False


def _before_tables(front: list[str]) -> int:
    return next((n for n, line in enumerate(front) if line.lstrip().startswith("[")), len(front))


def _written(kind: str, key: str, value: Any) -> list[str]:
    if kind == "yaml":
        return pages.front_yaml({key: value}).rstrip("\n").split("\n")
    if isinstance(value, Mapping) or not re.fullmatch(r"[A-Za-z0-9_-]+", key):
        raise pages.FrontMatterError(f"{key!r} cannot be set in TOML front matter")
    # A JSON string, number, boolean or list of them is a TOML value too.
    return [f"{key} = {json.dumps(value, ensure_ascii=False, default=str)}"]
