"""Scores of CVSS, where a source gives only the vector.

Versions 3.0 and 3.1 are computed by their specification (§7.1). Version 4 is a table of 270 rows,
and no source that we read gives its vector without a severity in words.
"""

from typing import Any, Final

from cleats.toolsets.code.triage.records import Cvss
from cleats.toolsets.code.triage.values import line, number

_WEIGHTS: Final = {
    "AV": {"N": 0.85, "A": 0.62, "L": 0.55, "P": 0.2},
    "AC": {"L": 0.77, "H": 0.44},
    "UI": {"N": 0.85, "R": 0.62},
    "C": {"H": 0.56, "L": 0.22, "N": 0.0},
    "I": {"H": 0.56, "L": 0.22, "N": 0.0},
    "A": {"H": 0.56, "L": 0.22, "N": 0.0},
}
_PRIVILEGES: Final = {
    "U": {"N": 0.85, "L": 0.62, "H": 0.27},
    "C": {"N": 0.85, "L": 0.68, "H": 0.5},
}
HIGHEST: Final = 10.0


def cvss(vector: Any, score: Any = None, version: Any = None) -> Cvss | None:
    """What is known of a score; None when nothing is."""
    text, named = line(vector), line(version)
    if named.startswith("3.") and text and not text.startswith("CVSS:"):
        text = f"CVSS:{named}/{text}"
    known = number(score)
    if known is None or not 0 < known <= HIGHEST:
        known = base_score(text)
    if known is None and not text:
        return None
    return Cvss(known, text, named or _version(text))


def base_score(vector: str) -> float | None:
    """The base score of a vector of version 3; None for any other text."""
    name, _, rest = vector.partition("/")
    metrics = dict(part.partition(":")[::2] for part in rest.split("/"))
    if name not in ("CVSS:3.0", "CVSS:3.1") or metrics.get("S") not in _PRIVILEGES:
        return None
    try:
        weight = {key: table[metrics[key]] for key, table in _WEIGHTS.items()}
        privileges = _PRIVILEGES[metrics["S"]][metrics["PR"]]
    except KeyError:
        return None
    lost = 1 - (1 - weight["C"]) * (1 - weight["I"]) * (1 - weight["A"])
    changed = metrics["S"] == "C"
    impact = 7.52 * (lost - 0.029) - 3.25 * (lost - 0.02) ** 15 if changed else 6.42 * lost
    if impact <= 0:
        return 0.0
    ease = 8.22 * weight["AV"] * weight["AC"] * privileges * weight["UI"]
    return _up(min((1.08 if changed else 1.0) * (impact + ease), HIGHEST))


def _up(score: float) -> float:
    """The next tenth, as the specification rounds: without the noise of binary fractions."""
    whole = round(score * 100_000)
    return whole / 100_000 if whole % 10_000 == 0 else (whole // 10_000 + 1) / 10


def _version(vector: str) -> str:
    head = vector.partition("/")[0]
    return head.removeprefix("CVSS:") if head.startswith("CVSS:") else ""
