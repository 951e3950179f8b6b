"""CVSS scores for sources that provide only the vector.

Versions 3.0 and 3.1 are computed as specified (§7.1). Version 4 needs a table of 270 rows, and
every supported source that has such a vector also names a severity.
"""

from typing import Any, Final

from cleats.toolsets.code.triage.records import Cvss
from cleats.toolsets.code.triage.values import to_line, to_number

_METRIC_WEIGHTS: Final = {
    "AV": {"N": 0.85, "A": 0.62, "L": 0.55, "P": 0.2},
    "AC": {"L": 0.77, "H": 0.44},
    "UI": {"N": 0.85, "R": 0.62},
    "C": {"H": 0.56, "L": 0.22, "N": 0.0},
    "I": {"H": 0.56, "L": 0.22, "N": 0.0},
    "A": {"H": 0.56, "L": 0.22, "N": 0.0},
}
_PRIVILEGE_WEIGHTS: Final = {
    "U": {"N": 0.85, "L": 0.62, "H": 0.27},
    "C": {"N": 0.85, "L": 0.68, "H": 0.5},
}
MAX_SCORE: Final = 10.0


def parse_cvss(vector: Any, score: Any = None, version: Any = None) -> Cvss | None:
    """Return the CVSS data of a vulnerability, or None if there is none."""
    vector_text, version_text = to_line(vector), to_line(version)
    if version_text.startswith("3.") and vector_text and not vector_text.startswith("CVSS:"):
        vector_text = f"CVSS:{version_text}/{vector_text}"
    base_score = to_number(score)
    if base_score is None or not 0 < base_score <= MAX_SCORE:
        base_score = compute_base_score(vector_text)
    if base_score is None and not vector_text:
        return None
    return Cvss(base_score, vector_text, version_text or _parse_version(vector_text))


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
    return _round_up(min((1.08 if scope_changed else 1.0) * (impact + exploitability), MAX_SCORE))


def _round_up(score: float) -> float:
    """Round up to the next tenth as specified, ignoring binary fraction noise."""
    scaled = round(score * 100_000)
    return scaled / 100_000 if scaled % 10_000 == 0 else (scaled // 10_000 + 1) / 10


def _parse_version(vector: str) -> str:
    prefix = vector.partition("/")[0]
    return prefix.removeprefix("CVSS:") if prefix.startswith("CVSS:") else ""
