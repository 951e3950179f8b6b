"""Vulnerabilities of a CycloneDX document: an SBOM that includes them, or a VEX."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from cleats.toolsets.code.triage.cvss import parse_cvss
from cleats.toolsets.code.triage.records import Cvss, Package, TriageRecord, Vulnerability
from cleats.toolsets.code.triage.sources.drafts import FindingDraft, FindingSource, join_key
from cleats.toolsets.code.triage.values import (
    find_cve,
    find_cwes,
    get_nested,
    iter_objects,
    normalize_ecosystem,
    normalize_severity,
    to_line,
    to_lines,
    to_text,
)

MAX_COMPONENT_DEPTH = 16
"""Levels of nested components that are read."""


def iter_items(document: Any) -> Iterator[Any]:
    """Yield each vulnerability with each component that it affects."""
    if not isinstance(document, dict):
        return
    components = {ref: component_data for ref, component_data in _iter_components(document) if ref}
    for vulnerability in iter_objects(get_nested(document, "vulnerabilities") or []):
        details = {name: value for name, value in vulnerability.items() if name != "affects"}
        for affected in list(iter_objects(get_nested(vulnerability, "affects"))) or [{}]:
            ref = to_line(get_nested(affected, "ref"))
            affected_component = components.get(ref) or {}
            component = {name: get_nested(affected_component, name) for name in ("name", "group", "version", "purl")}
            yield {"vulnerability": details, "affects": affected, "component": component}


def _iter_components(document: Any) -> Iterator[tuple[str, Any]]:
    level = [get_nested(document, "metadata", "component"), *iter_objects(get_nested(document, "components"))]
    for _ in range(MAX_COMPONENT_DEPTH):
        components = [component for component in level if isinstance(component, dict)]
        yield from (
            (to_line(get_nested(component, "bom-ref")) or to_line(get_nested(component, "purl")), component)
            for component in components
        )
        level = [child for component in components for child in iter_objects(get_nested(component, "components"))]


def draft_finding(raw: Any) -> FindingDraft:
    """Return the draft of one vulnerability of one component."""
    vulnerability = get_nested(raw, "vulnerability")
    vuln_id = to_line(get_nested(vulnerability, "id"))
    references = to_lines(get_nested(vulnerability, "references"), "id")
    score, severity_word = _find_highest_rating(vulnerability)
    vuln = Vulnerability(
        vuln_id=vuln_id,
        cve=find_cve(vuln_id, references),
        aliases=references,
        title=to_line(to_text(get_nested(vulnerability, "description")).partition("\n")[0], 160),
        description=to_text(get_nested(vulnerability, "detail")) or to_text(get_nested(vulnerability, "description")),
        severity=normalize_severity(severity_word, score.score if score else None),
        cvss=score,
        cwe=find_cwes(get_nested(vulnerability, "cwes")),
        references=to_lines(
            [get_nested(vulnerability, "source", "url"), *to_lines(get_nested(vulnerability, "advisories"), "url")]
        ),
    )
    package = _build_package(raw)
    record = TriageRecord(
        status=to_line(get_nested(vulnerability, "analysis", "state")).lower(),
        vuln=vuln,
        package=package,
        labels=_build_labels(vulnerability),
    )
    return FindingDraft(join_key(vuln_id, package.purl or package.name, package.installed_version), record)


def _build_labels(vulnerability: Any) -> dict[str, str]:
    justification = to_line(get_nested(vulnerability, "analysis", "justification"))
    return {"justification": justification} if justification else {}


def _find_highest_rating(vulnerability: Any) -> tuple[Cvss | None, str]:
    """Return the highest score and the severity of the same rating."""
    scored_ratings = [
        (
            parse_cvss(
                get_nested(rating_data, "vector"),
                get_nested(rating_data, "score"),
                _parse_cvss_version(get_nested(rating_data, "method")),
            ),
            rating_data,
        )
        for rating_data in iter_objects(get_nested(vulnerability, "ratings"))
    ]
    if not scored_ratings:
        return None, ""
    score, rating = max(scored_ratings, key=lambda pair: (pair[0].score or 0.0) if pair[0] else 0.0)
    words = [to_line(get_nested(rating_data, "severity")) for _, rating_data in scored_ratings]
    return score, to_line(get_nested(rating, "severity")) or next(filter(None, words), "")


def _parse_cvss_version(method: Any) -> str:
    digits = to_line(method).removeprefix("CVSSv")
    return {"2": "2.0", "3": "3.0", "31": "3.1", "4": "4.0"}.get(digits, "")


def _build_package(raw: Any) -> Package:
    component = get_nested(raw, "component")
    ref = to_line(get_nested(raw, "affects", "ref"))
    purl = to_line(get_nested(component, "purl")) or (ref if ref.startswith("pkg:") else "")
    registry, name, version = _parse_purl(purl)
    group, plain_name = to_line(get_nested(component, "group")), to_line(get_nested(component, "name"))
    separator = ":" if registry == "maven" else "/"
    versions = list(iter_objects(get_nested(raw, "affects", "versions")))
    return Package(
        name=name or (f"{group}{separator}{plain_name}" if group and plain_name else plain_name) or ref,
        ecosystem=normalize_ecosystem(registry),
        installed_version=to_line(get_nested(component, "version")) or version,
        affected_range=", ".join(to_lines(versions, "range")),
        purl=purl,
    )


def _parse_purl(purl: str) -> tuple[str, str, str]:
    """Return the type, the name and the version in a package URL."""
    if not purl.startswith("pkg:"):
        return "", "", ""
    path = purl.removeprefix("pkg:").partition("?")[0].partition("#")[0]
    registry, _, rest = path.partition("/")
    name, _, version = rest.partition("@")
    full_name = unquote(name)
    if registry == "maven":
        full_name = full_name.replace("/", ":")
    return registry.lower(), full_name, unquote(version)


CYCLONEDX_SOURCE = FindingSource(
    "A CycloneDX document with vulnerabilities: an SBOM or a VEX.", iter_items, draft_finding
)
