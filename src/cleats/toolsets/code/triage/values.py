"""Values from JSON of unknown origin, records from tables of paths, and CVSS scores.

Nothing here raises: a value of an unexpected type counts as missing. Texts and lists are truncated.

A reader of a scanner format is mostly its tables in `field_tables.toml`, which give for each field of a part of the
record where an item of the format has the value. The paths of a field are separated by spaces:

- `advisory.summary` is the value below nested keys.
- `vuln.title|title` is the first of these values that is not null.
- `references[].url` are the values below the keys of the objects of a list.

A text is taken from the first path that has one; a list has the values of all paths.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from cleats.toolsets.code.records.model import Cvss, TriageRecord, Vulnerability

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

_KNOWN_SEVERITIES: Final = frozenset({"critical", "high", "medium", "low", "info", "none"})

SYNONYMS: Final[Mapping[str, Mapping[str, str]]] = {
    topic: {word: meaning for meaning, words in rows.items() for word in words.split()}
    for topic, rows in tomllib.loads(Path(__file__).with_name("synonyms.toml").read_text("utf-8")).items()
}
"""Words of scanners and their meanings, by topic: severity, ecosystem, manager."""


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
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    texts = [f"CWE-{item}" if type(item) is int else to_line(item) for item in items]
    cwe_ids = dict.fromkeys(f"CWE-{digits}" for text in texts for digits in _CWE_PATTERN.findall(text))
    return list(cwe_ids)[:MAX_LIST_ITEMS]


def normalize_severity(word: Any, score: float | None = None) -> str:
    """Return a canonical severity, from the word of a source or else from a CVSS score."""
    name = to_line(word).lower()
    name = SYNONYMS["severity"].get(name, name)
    if name in _KNOWN_SEVERITIES:
        return name
    if score is None:
        return ""
    steps = ((9.0, "critical"), (7.0, "high"), (4.0, "medium"), (0.1, "low"))
    return next((level for min_score, level in steps if score >= min_score), "none")


def normalize_ecosystem(value: Any) -> str:
    """Return the canonical name of a package registry."""
    name = to_line(value).lower()
    return SYNONYMS["ecosystem"].get(name, name)


def strip_root(root: Path, path: str) -> str:
    """Return a path relative to a folder if it is inside, and unchanged otherwise."""
    return path.removeprefix(f"{root.as_posix()}/")


_FIELD_TABLES: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = tomllib.loads(
    Path(__file__).with_name("field_tables.toml").read_text("utf-8")
)
"""The paths of the values in an item, by scanner format, part of the record, and field."""
FieldReader: TypeAlias = Callable[[Any, str], Any]


class FindingDraft(NamedTuple):
    """A finding, with the key by which its source identifies it; the key may be empty."""

    key: str
    record: TriageRecord


class FindingSource(NamedTuple):
    """A format of documents with findings."""

    iter_items: Callable[[Any], Iterator[Any]]
    """Yields the items of a document, each with all that is needed to understand it."""
    draft_finding: Callable[[Any], FindingDraft]


class _ItemPath(NamedTuple):
    alternatives: tuple[tuple[str, ...], ...]
    is_list: bool
    item_keys: tuple[str, ...]


@cache
def _parse_paths(paths: str) -> tuple[_ItemPath, ...]:
    parsed_paths = []
    for path in paths.split():
        head, brackets, tail = path.partition("[]")
        alternatives = tuple(tuple(keys.split(".")) for keys in head.split("|"))
        parsed_paths.append(_ItemPath(alternatives, bool(brackets), tuple(tail.split(".")[1:])))
    return tuple(parsed_paths)


def read_value(item: Any, path: str) -> Any:
    """Return the value at a path, as it is in the document."""
    return _read_first(item, _parse_paths(path)[0])


def _read_first(item: Any, path: _ItemPath) -> Any:
    values = (get_nested(item, *keys) for keys in path.alternatives)
    return next((value for value in values if value is not None), None)


def read_line(item: Any, paths: str) -> str:
    """Return the first text at the paths, as one line."""
    return next((text for path in _parse_paths(paths) if (text := to_line(_read_first(item, path)))), "")


def read_lines(item: Any, paths: str) -> list[str]:
    """Return the distinct texts at all paths, each as one line."""
    values: list[Any] = []
    for path in _parse_paths(paths):
        value = _read_first(item, path)
        entries = value if path.is_list and isinstance(value, list) else [value]
        values += (get_nested(entry, *path.item_keys) for entry in entries)
    return to_lines(values)


def read_text(item: Any, paths: str) -> str:
    """Return the first text at the paths, with all its lines."""
    return next((text for path in _parse_paths(paths) if (text := to_text(_read_first(item, path)))), "")


_FIELD_READERS: Final[Mapping[str, FieldReader]] = {
    **dict.fromkeys(("aliases", "references", "compensating_controls"), read_lines),
    **dict.fromkeys(("labels", "tags"), lambda item, path: to_text_mapping(read_value(item, path))),
    "cve": lambda item, paths: find_cve(read_lines(item, paths)),
    "cwe": lambda item, paths: find_cwes(
        *(read_lines(item, path) if "[]" in path else read_value(item, path) for path in paths.split())
    ),
    "description": read_text,
    "ecosystem": lambda item, paths: normalize_ecosystem(read_line(item, paths)),
    "internet_exposed": lambda item, path: value if isinstance(value := read_value(item, path), bool) else None,
    "status": lambda item, paths: read_line(item, paths).lower(),
}
"""The readers of fields that are more than one line of text."""


def read_fields(item: Any, scanner: str, part: str) -> dict[str, Any]:
    """Return the values of an item for the fields of a part of the record, converted as the record needs them."""
    default_reader: FieldReader = read_line
    return {
        name: _FIELD_READERS.get(name, default_reader)(item, paths)
        for name, paths in _FIELD_TABLES[scanner][part].items()
    }


def build_vulnerability(item: Any, scanner: str, cvss: Cvss | None = None) -> Vulnerability:
    """Return the vulnerability of an item; a missing CVE or severity follows from its ids and score."""
    vuln = Vulnerability(**read_fields(item, scanner, "vulnerability"), cvss=cvss)
    vuln.cve = find_cve(vuln.cve, vuln.vuln_id, vuln.aliases)
    vuln.severity = normalize_severity(vuln.severity, cvss.score if cvss else None)
    return vuln


def join_key(*parts: str) -> str:
    """Join the parts of a key, or return an empty text if the first part is missing."""
    return ":".join(parts) if parts[0] else ""


WRAPPER_KEYS: Final = ("alerts", "findings", "records", "items", "detail")


def iter_findings(document: Any) -> Iterator[Any]:
    """Yield the findings: a list, the value of a usual key, the first list, or the document."""
    wrapped = document if isinstance(document, list) else _unwrap_findings(document)
    if isinstance(wrapped, list):
        yield from wrapped
    else:
        yield document if wrapped is None else wrapped


def _unwrap_findings(document: Any) -> Any:
    if not isinstance(document, dict):
        return None
    for name in WRAPPER_KEYS:
        if isinstance(get_nested(document, name), list | dict):
            return document[name]
    # A single finding has lists too, such as references.
    if any(isinstance(value, dict | str | int) for value in document.values()):
        return None
    return next((value for value in document.values() if isinstance(value, list)), None)


_METRIC_WEIGHTS: Final = {
    "AV": {"N": 0.85, "A": 0.62, "L": 0.55, "P": 0.2},
    "AC": {"L": 0.77, "H": 0.44},
    "UI": {"N": 0.85, "R": 0.62},
    **{key: {"H": 0.56, "L": 0.22, "N": 0.0} for key in ("C", "I", "A")},
}
_PRIVILEGE_WEIGHTS: Final = {"U": {"N": 0.85, "L": 0.62, "H": 0.27}, "C": {"N": 0.85, "L": 0.68, "H": 0.5}}
MAX_SCORE: Final = 10.0


def parse_cvss(vector: Any, score: Any = None, version: Any = None) -> Cvss | None:
    """Return the CVSS data of a vulnerability, or None if there is none.

    A missing score of versions 3.0 and 3.1 is computed as specified (§7.1). Version 4 needs a table
    of 270 rows, and every supported source that has such a vector also names a severity.
    """
    vector_text, version_text = to_line(vector), to_line(version)
    if version_text.startswith("3.") and vector_text and not vector_text.startswith("CVSS:"):
        vector_text = f"CVSS:{version_text}/{vector_text}"
    base_score = to_number(score)
    if base_score is None or not 0 < base_score <= MAX_SCORE:
        base_score = compute_base_score(vector_text)
    if base_score is None and not vector_text:
        return None
    prefix = vector_text.partition("/")[0]
    return Cvss(base_score, vector_text, version_text or (prefix[5:] if prefix.startswith("CVSS:") else ""))


def compute_base_score(vector: str) -> float | None:
    """Return the base score of a version 3 vector, or None for any other text."""
    prefix, _, rest = vector.partition("/")
    metrics = dict(part.partition(":")[::2] for part in rest.split("/"))
    if prefix not in ("CVSS:3.0", "CVSS:3.1") or metrics.get("S") not in _PRIVILEGE_WEIGHTS:
        return None
    try:
        weights = {key: table[metrics[key]] for key, table in _METRIC_WEIGHTS.items()}
        privileges = _PRIVILEGE_WEIGHTS[metrics["S"]][metrics["PR"]]
    except KeyError:
        return None
    impact_base = 1 - (1 - weights["C"]) * (1 - weights["I"]) * (1 - weights["A"])
    scope_changed = metrics["S"] == "C"
    impact = 7.52 * (impact_base - 0.029) - 3.25 * (impact_base - 0.02) ** 15 if scope_changed else 6.42 * impact_base
    if impact <= 0:
        return 0.0
    exploitability = 8.22 * weights["AV"] * weights["AC"] * privileges * weights["UI"]
    score = min((1.08 if scope_changed else 1.0) * (impact + exploitability), MAX_SCORE)
    # Rounded up to the next tenth as specified, which ignores the noise of binary fractions.
    scaled = round(score * 100_000)
    return scaled / 100_000 if scaled % 10_000 == 0 else (scaled // 10_000 + 1) / 10
