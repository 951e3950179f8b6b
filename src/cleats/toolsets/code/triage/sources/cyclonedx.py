"""Vulnerabilities of a CycloneDX document: an SBOM that includes them, or a VEX."""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from cleats.toolsets.code.records.model import Cvss, Package, TriageRecord
from cleats.toolsets.code.triage.sources.base import (
    FieldTable,
    FindingDraft,
    build_vulnerability,
    join_key,
    parse_cvss,
    read_line,
    read_lines,
    read_text,
)
from cleats.toolsets.code.triage.values import (
    get_nested,
    iter_objects,
    normalize_ecosystem,
    normalize_severity,
    to_line,
)

MAX_COMPONENT_DEPTH: Final = 16
"""Levels of nested components that are read."""

_VULNERABILITY: Final[FieldTable] = {
    "vuln_id": "id",
    "aliases": "references[].id",
    "description": "detail description",
    "cwe": "cwes",
    "references": "source.url advisories[].url",
}
_CVSS_VERSIONS: Final = {"2": "2.0", "3": "3.0", "31": "3.1", "4": "4.0"}


def iter_cyclonedx_items(document: Any) -> Iterator[Any]:
    """Yield each vulnerability with each component that it affects."""
    if not isinstance(document, dict):
        return
    components = {ref: component_data for ref, component_data in _iter_components(document) if ref}
    for vulnerability in iter_objects(get_nested(document, "vulnerabilities") or []):
        details = {name: value for name, value in vulnerability.items() if name != "affects"}
        for affected in list(iter_objects(get_nested(vulnerability, "affects"))) or [{}]:
            affected_component = components.get(read_line(affected, "ref"))
            component = {name: get_nested(affected_component, name) for name in ("name", "group", "version", "purl")}
            yield {"vulnerability": details, "affects": affected, "component": component}


def _iter_components(document: Any) -> Iterator[tuple[str, Any]]:
    level = [get_nested(document, "metadata", "component"), *iter_objects(get_nested(document, "components"))]
    for _ in range(MAX_COMPONENT_DEPTH):
        components = [component for component in level if isinstance(component, dict)]
        yield from ((read_line(component, "bom-ref purl"), component) for component in components)
        level = [child for component in components for child in iter_objects(get_nested(component, "components"))]


def draft_cyclonedx_finding(raw: Any) -> FindingDraft:
    """Return the draft of one vulnerability of one component."""
    vulnerability = get_nested(raw, "vulnerability")
    score, severity = _find_highest_rating(vulnerability)
    vuln = build_vulnerability(vulnerability, _VULNERABILITY, score)
    vuln.title = to_line(read_text(vulnerability, "description").partition("\n")[0], 160)
    vuln.severity = normalize_severity(severity, score.score if score else None)
    package = _build_package(raw)
    justification = read_line(vulnerability, "analysis.justification")
    record = TriageRecord(
        status=read_line(vulnerability, "analysis.state").lower(),
        vuln=vuln,
        package=package,
        labels={"justification": justification} if justification else {},
    )
    return FindingDraft(join_key(vuln.vuln_id, package.purl or package.name, package.installed_version), record)


def _find_highest_rating(vulnerability: Any) -> tuple[Cvss | None, str]:
    """Return the highest score and the severity of the same rating."""
    ratings = list(iter_objects(get_nested(vulnerability, "ratings")))
    if not ratings:
        return None, ""
    scores = [
        parse_cvss(
            get_nested(rating, "vector"),
            get_nested(rating, "score"),
            _CVSS_VERSIONS.get(read_line(rating, "method").removeprefix("CVSSv")),
        )
        for rating in ratings
    ]
    highest = max(range(len(ratings)), key=lambda number: (cvss.score or 0.0) if (cvss := scores[number]) else 0.0)
    severities = [read_line(rating, "severity") for rating in ratings]
    return scores[highest], severities[highest] or next(filter(None, severities), "")


def _build_package(raw: Any) -> Package:
    component = get_nested(raw, "component")
    ref = read_line(raw, "affects.ref")
    purl = read_line(component, "purl") or (ref if ref.startswith("pkg:") else "")
    registry, name, version = _parse_purl(purl)
    group, plain_name = read_line(component, "group"), read_line(component, "name")
    separator = ":" if registry == "maven" else "/"
    return Package(
        name=name or (f"{group}{separator}{plain_name}" if group and plain_name else plain_name) or ref,
        ecosystem=normalize_ecosystem(registry),
        installed_version=read_line(component, "version") or version,
        affected_range=", ".join(read_lines(raw, "affects.versions[].range")),
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
