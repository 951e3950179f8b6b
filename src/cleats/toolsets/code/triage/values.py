"""Values out of JSON that anybody may have written.

Nothing here raises: what has another type than expected is not there. Texts are cut, lists end.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

LINE: Final = 500
"""Characters of a name, a version, a title."""

PROSE: Final = 20_000
"""Characters of a description."""

MANY: Final = 50
"""Items of a list."""

HUGE: Final = 1e18
"""More than any number in a report that means anything."""

_CVE = re.compile(r"CVE-\d{4}-\d{4,}", re.IGNORECASE)
_CWE = re.compile(r"\bcwe-?0*(\d{1,6})\b", re.IGNORECASE)
_ADVISORY = re.compile(r"GHSA(?:-[0-9a-z]{4}){3}", re.IGNORECASE)

_SEVERITIES: Final = {
    "moderate": "medium",
    "warning": "medium",
    "error": "high",
    "note": "low",
    "negligible": "low",
    "important": "high",
    "informational": "info",
    "information": "info",
}
_KNOWN: Final = frozenset({"critical", "high", "medium", "low", "info", "none"})

_ECOSYSTEMS: Final = {
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


def at(value: Any, *keys: str) -> Any:
    """What lies below some keys; None when any is missing."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def line(value: Any, most: int = LINE) -> str:
    """A text on one line; a number is one too."""
    return " ".join(_text(value)[: 4 * most].split())[:most]


def prose(value: Any) -> str:
    """A text of any number of lines."""
    return _text(value)[:PROSE].replace("\r\n", "\n").strip()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value) if abs(value) < HUGE else ""
    return ""


def first(*values: Any) -> str:
    """The first that says anything, on one line."""
    return next((text for value in values if (text := line(value))), "")


def number(value: Any) -> float | None:
    """A number, or a text that is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if abs(found) < HUGE else None  # nor NaN


def count(value: Any) -> int:
    """A number that counts something, such as lines; 0 for anything else."""
    found = number(value)
    return int(found) if found is not None and found > 0 else 0


def flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list, or the one that is given instead of a list."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield each


def lines(value: Any, *keys: str) -> list[str]:
    """The texts of a list, or those below keys of its objects; no two the same."""
    given = value if isinstance(value, list) else [value]
    found = (line(at(each, *keys) if keys else each) for each in given)
    return list(dict.fromkeys(text for text in found if text))[:MANY]


def texts_by_key(value: Any) -> dict[str, str]:
    """An object whose values are texts."""
    if not isinstance(value, dict):
        return {}
    pairs = ((line(key, 100), line(each)) for key, each in list(value.items())[:MANY])
    return {key: text for key, text in pairs if key and text}


def cve(*values: Any) -> str:
    """The first CVE among ids and lists of ids."""
    found = (_CVE.fullmatch(text) for value in values for text in lines(value))
    return next((match[0].upper() for match in found if match), "")


def advisory(value: Any) -> str:
    """The id of a GitHub advisory in a URL."""
    found = _ADVISORY.search(line(value))
    return f"GHSA{found[0][4:].lower()}" if found else ""


def cwes(*values: Any) -> list[str]:
    """The weaknesses named in texts, tags and numbers, as `CWE-79`."""
    named: dict[str, None] = {}
    for value in values:
        for each in value if isinstance(value, list) else [value]:
            text = f"CWE-{each}" if type(each) is int else line(each)
            named |= dict.fromkeys(f"CWE-{found}" for found in _CWE.findall(text))
    return list(named)[:MANY]


def severity(word: Any, score: float | None = None) -> str:
    """A severity in our words, from another's word or else from a score of CVSS."""
    named = line(word).lower()
    named = _SEVERITIES.get(named, named)
    if named in _KNOWN:
        return named
    if score is None:
        return ""
    steps = ((9.0, "critical"), (7.0, "high"), (4.0, "medium"), (0.1, "low"))
    return next((name for least, name in steps if score >= least), "none")


def ecosystem(value: Any) -> str:
    """The name that a registry goes by here."""
    named = line(value).lower()
    return _ECOSYSTEMS.get(named, named)


def below(root: Path, path: str) -> str:
    """The path of a file as it is called below a folder, if it is there."""
    return path.removeprefix(f"{root.as_posix()}/")
