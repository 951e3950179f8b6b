"""Values from JSON of unknown origin.

Nothing here raises: a value of an unexpected type counts as missing. Texts and lists are truncated.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

MAX_LINE_CHARS: Final = 500
"""The length of a name, a version or a title."""

MAX_TEXT_CHARS: Final = 20_000
"""The length of a description."""

MAX_LIST_ITEMS: Final = 50
"""The length of a list."""

MAX_NUMBER: Final = 1e18
"""The bound for numbers; larger ones in a report are meaningless."""

_CVE_PATTERN = re.compile(r"CVE-\d{4}-\d{4,}", re.IGNORECASE)
_CWE_PATTERN = re.compile(r"\bcwe-?0*(\d{1,6})\b", re.IGNORECASE)
_GHSA_PATTERN = re.compile(r"GHSA(?:-[0-9a-z]{4}){3}", re.IGNORECASE)

_SEVERITY_SYNONYMS: Final = {
    "moderate": "medium",
    "warning": "medium",
    "error": "high",
    "note": "low",
    "negligible": "low",
    "important": "high",
    "informational": "info",
    "information": "info",
}
_KNOWN_SEVERITIES: Final = frozenset({"critical", "high", "medium", "low", "info", "none"})

_ECOSYSTEM_SYNONYMS: Final = {
    "pip": "pypi",
    "python": "pypi",
    "pythonpkg": "pypi",
    "golang": "go",
    "gomod": "go",
    "gobinary": "go",
    "crates.io": "cargo",
    "rust": "cargo",
    "gem": "rubygems",
    "bundler": "rubygems",
    "packagist": "composer",
    "node": "npm",
    "nodepkg": "npm",
    "jar": "maven",
    "java": "maven",
}


def get_nested(value: Any, *keys: str) -> Any:
    """Return the value below nested keys, or None if a key is missing."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def to_line(value: Any, max_chars: int = MAX_LINE_CHARS) -> str:
    """Return a text or a number as one line, truncated."""
    return " ".join(_to_string(value)[: 4 * max_chars].split())[:max_chars]


def to_text(value: Any) -> str:
    """Return a text with all its lines, truncated."""
    return _to_string(value)[:MAX_TEXT_CHARS].replace("\r\n", "\n").strip()


def _to_string(value: Any) -> str:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value) if abs(value) < MAX_NUMBER else ""
    return ""


def first_nonempty(*values: Any) -> str:
    """Return the first value with text, as one line."""
    return next((text for value in values if (text := to_line(value))), "")


def to_number(value: Any) -> float | None:
    """Return a number, or a text as a number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        parsed = float(value)
    except (ValueError, OverflowError):
        return None
    return parsed if abs(parsed) < MAX_NUMBER else None  # also rejects NaN


def to_count(value: Any) -> int:
    """Return a positive number, such as a line, as an integer, or 0 for anything else."""
    parsed = to_number(value)
    return int(parsed) if parsed is not None and parsed > 0 else 0


def to_flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def iter_objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list, or the single object given instead of a list."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield item


def to_lines(value: Any, *keys: str) -> list[str]:
    """Return the distinct texts of a list, or those below nested keys of its objects."""
    items = value if isinstance(value, list) else [value]
    texts = (to_line(get_nested(item, *keys) if keys else item) for item in items)
    return list(dict.fromkeys(text for text in texts if text))[:MAX_LIST_ITEMS]


def to_text_mapping(value: Any) -> dict[str, str]:
    """Return an object with its texts, each on one line."""
    if not isinstance(value, dict):
        return {}
    pairs = ((to_line(key, 100), to_line(item)) for key, item in list(value.items())[:MAX_LIST_ITEMS])
    return {key: text for key, text in pairs if key and text}


def find_cve(*values: Any) -> str:
    """Return the first CVE in ids and lists of ids."""
    matches = (_CVE_PATTERN.fullmatch(text) for value in values for text in to_lines(value))
    return next((match[0].upper() for match in matches if match), "")


def find_advisory_id(value: Any) -> str:
    """Return the id of the GitHub advisory in a URL."""
    match = _GHSA_PATTERN.search(to_line(value))
    return f"GHSA{match[0][4:].lower()}" if match else ""


def find_cwes(*values: Any) -> list[str]:
    """Return the weaknesses named in texts, tags and numbers, as `CWE-79`."""
    cwe_ids: dict[str, None] = {}
    for value in values:
        for item in value if isinstance(value, list) else [value]:
            text = f"CWE-{item}" if type(item) is int else to_line(item)
            cwe_ids |= dict.fromkeys(f"CWE-{digits}" for digits in _CWE_PATTERN.findall(text))
    return list(cwe_ids)[:MAX_LIST_ITEMS]


def normalize_severity(word: Any, score: float | None = None) -> str:
    """Return a canonical severity, from the word of a source or else from a CVSS score."""
    name = to_line(word).lower()
    name = _SEVERITY_SYNONYMS.get(name, name)
    if name in _KNOWN_SEVERITIES:
        return name
    if score is None:
        return ""
    steps = ((9.0, "critical"), (7.0, "high"), (4.0, "medium"), (0.1, "low"))
    return next((level for min_score, level in steps if score >= min_score), "none")


def normalize_ecosystem(value: Any) -> str:
    """Return the canonical name of a package registry."""
    name = to_line(value).lower()
    return _ECOSYSTEM_SYNONYMS.get(name, name)


def strip_root(root: Path, path: str) -> str:
    """Return a path relative to a folder if it is inside, and unchanged otherwise."""
    return path.removeprefix(f"{root.as_posix()}/")
