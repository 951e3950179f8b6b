"""Whether a document is of the format that a caller names, and what it looks like if not.

A clean report has no findings, and neither has a document of another format: only its signs tell
the one from the other. Formats without signs of their own are taken as they are.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from cleats.toolsets.code.triage.values import at, objects

Sign: TypeAlias = Callable[[Any], bool]


class Look(NamedTuple):
    """What a document looks like, and what to do with such a one."""

    name: str
    advice: str
    sign: Sign


def fits(source: str, document: Any) -> bool:
    """Whether a document can be what the source writes, with findings or without."""
    if source in OPEN:
        return True
    look = seen(document)
    if look is not None:
        return look.name == source
    return source not in SIGNS or CLEAN[source](document)


def advice(source: str, document: Any) -> str:
    """What to do instead, for a document that is not what the source writes."""
    look = seen(document)
    if look is None:
        return f"Check what wrote the file: {source} always has {NEEDS[source]}."
    return f"This looks like {look.advice}"


def seen(document: Any) -> Look | None:
    """What a document looks like; None when nothing tells."""
    return next((look for look in LOOKS if look.sign(document)), None)


def _sarif(document: Any) -> bool:
    runs = at(document, "runs")
    if not isinstance(runs, list):
        return False
    return isinstance(at(document, "version"), str) or any("tool" in run for run in objects(runs))


def _npm(document: Any) -> bool:
    tables = (at(document, "advisories"), at(document, "vulnerabilities"))
    return any(isinstance(table, dict) for table in tables)


def _pip(document: Any) -> bool:
    listed = at(document, "dependencies") if isinstance(document, dict) else document
    return any("vulns" in each or "skip_reason" in each for each in _list(listed))


def _osv(document: Any) -> bool:
    if isinstance(document, list):
        return any(map(_entry, _list(document)))
    results = _list(at(document, "results"))
    found = any("packages" in each or "vulns" in each for each in results)
    return found or isinstance(at(document, "vulns"), list) or _entry(document)


def _entry(document: Any) -> bool:
    """An entry of the database itself."""
    told = ("affected", "modified", "published", "schema_version", "aliases")
    return isinstance(at(document, "id"), str) and any(key in document for key in told)


def _has(**kinds: type) -> Sign:
    """The sign that these keys are there with values of these types."""
    return lambda document: all(isinstance(at(document, key), kinds[key]) for key in kinds)


def _rows(*keys: str) -> Sign:
    """The sign that the document is a list whose objects have these keys."""
    return lambda document: any(all(key in row for key in keys) for row in _list(document))


def _list(value: Any) -> list[dict[str, Any]]:
    return list(objects(value)) if isinstance(value, list) else []


SIGNS: Final[Mapping[str, Sign]] = {
    "sarif": _sarif,
    "cyclonedx": lambda document: at(document, "bomFormat") == "CycloneDX",
    "npm_audit": _npm,
    "pip_audit": _pip,
    "osv": _osv,
}
"""By these a document is known to be of a source."""

CLEAN: Final[Mapping[str, Sign]] = {
    **SIGNS,
    "pip_audit": lambda document: document == [] or _has(dependencies=list)(document),
    # Whoever asks the database about a package without vulnerabilities gets `{}`.
    "osv": lambda document: (
        document in ([], {}) or _has(results=list)(document) or _has(id=str)(document)
    ),
}
"""Enough for a document that nothing else is known about."""

NEEDS: Final[Mapping[str, str]] = {
    "sarif": "`version` and `runs`",
    "cyclonedx": '`"bomFormat": "CycloneDX"`',
    "npm_audit": "`vulnerabilities` or `advisories`",
    "pip_audit": "`dependencies`",
    "osv": "`results` or `vulns`",
}
"""What each has in any case."""

OPEN: Final = frozenset({"generic", "manual"})
"""Sources that take any document."""

LOOKS: Final = (
    Look("bandit", "bandit's JSON: run `bandit -f sarif`.", _has(results=list, metrics=dict)),
    Look("semgrep", "Semgrep's JSON: run `semgrep --sarif`.", _has(results=list, paths=dict)),
    Look("trivy", "Trivy's JSON: run `trivy --format sarif`.", _has(SchemaVersion=int)),
    Look("grype", "Grype's JSON: run `grype -o sarif`.", _has(matches=list, descriptor=dict)),
    Look(
        "ruff",
        "ruff's JSON: run `ruff check --output-format sarif`.",
        _rows("code", "filename", "noqa_row"),
    ),
    Look("spdx", "SPDX, which lists packages and no findings.", _has(spdxVersion=str)),
    Look("npm_error", "an error of npm: look at its message.", _has(error=dict)),
    Look("sarif", "SARIF: name the source `sarif`.", SIGNS["sarif"]),
    Look("cyclonedx", "CycloneDX: name the source `cyclonedx`.", SIGNS["cyclonedx"]),
    Look("npm_audit", "what npm audit writes: name the source `npm_audit`.", SIGNS["npm_audit"]),
    Look("pip_audit", "what pip-audit writes: name the source `pip_audit`.", SIGNS["pip_audit"]),
    Look("osv", "OSV: name the source `osv`.", SIGNS["osv"]),
)
"""What people hand over, the surest signs first."""
