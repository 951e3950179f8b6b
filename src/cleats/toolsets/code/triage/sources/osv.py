"""Vulnerabilities in the OSV schema: plain, from the API of osv.dev, or from osv-scanner."""

from collections.abc import Iterator
from typing import Any

from cleats.toolsets.code.triage.cvss import parse_cvss
from cleats.toolsets.code.triage.records import Cvss, Package, TriageRecord, Vulnerability
from cleats.toolsets.code.triage.sources.drafts import FindingDraft, FindingSource, join_key
from cleats.toolsets.code.triage.values import (
    find_cve,
    find_cwes,
    first_nonempty,
    get_nested,
    iter_objects,
    normalize_ecosystem,
    normalize_severity,
    to_line,
    to_lines,
    to_text,
)


def iter_items(document: Any) -> Iterator[Any]:
    """Yield each vulnerability with each package that has it."""
    if isinstance(get_nested(document, "results"), list):
        yield from _iter_scanner_items(document["results"])
        return
    if document == {}:
        return  # the answer of the API for a package without vulnerabilities
    vulnerabilities = document if isinstance(document, list) else get_nested(document, "vulns") or document
    for vulnerability in iter_objects(vulnerabilities):
        affected = [
            entry for entry in iter_objects(get_nested(vulnerability, "affected")) if get_nested(entry, "package")
        ]
        for entry in affected or [{}]:
            yield {"vulnerability": vulnerability, "package": get_nested(entry, "package")}


def _iter_scanner_items(results: list[Any]) -> Iterator[Any]:
    for result in iter_objects(results):
        source = get_nested(result, "source", "path")
        # An answer of the batch API has the vulnerabilities here and does not name packages.
        for vulnerability in iter_objects(get_nested(result, "vulns") or []):
            yield from iter_items(vulnerability)
        for package_result in iter_objects(get_nested(result, "packages") or []):
            for vulnerability in iter_objects(get_nested(package_result, "vulnerabilities") or []):
                yield {
                    "vulnerability": vulnerability,
                    "package": get_nested(package_result, "package"),
                    "source": source,
                }


def draft_finding(raw: Any) -> FindingDraft:
    """Return the draft of one vulnerability of one package."""
    vulnerability = get_nested(raw, "vulnerability")
    vuln_id, aliases = to_line(get_nested(vulnerability, "id")), to_lines(get_nested(vulnerability, "aliases"))
    score = _find_score(vulnerability)
    severity_word = first_nonempty(
        get_nested(vulnerability, "database_specific", "severity"),
        get_nested(vulnerability, "ecosystem_specific", "severity"),
    )
    vuln = Vulnerability(
        vuln_id=vuln_id,
        cve=find_cve(vuln_id, aliases),
        aliases=aliases,
        title=to_line(get_nested(vulnerability, "summary")),
        description=to_text(get_nested(vulnerability, "details")),
        severity=normalize_severity(severity_word, score.score if score else None),
        cvss=score,
        cwe=find_cwes(get_nested(vulnerability, "database_specific", "cwe_ids")),
        references=to_lines(get_nested(vulnerability, "references"), "url"),
    )
    package = _build_package(raw, vulnerability)
    record = TriageRecord(
        status="withdrawn" if get_nested(vulnerability, "withdrawn") else "", vuln=vuln, package=package
    )
    return FindingDraft(join_key(vuln_id, package.name, package.manifest_path), record)


def _find_score(vulnerability: Any) -> Cvss | None:
    """Return the best of several scores; for version 3 the number can be computed."""
    parsed_scores = [
        parse_cvss(get_nested(rating, "score")) for rating in iter_objects(get_nested(vulnerability, "severity"))
    ]
    scores = [score for score in parsed_scores if score is not None]
    return max(scores, key=lambda score: (score.score is not None, score.version), default=None)


def _build_package(raw: Any, vulnerability: Any) -> Package:
    package = get_nested(raw, "package")
    name, registry = to_line(get_nested(package, "name")), to_line(get_nested(package, "ecosystem"))
    affected = _find_affected(vulnerability, name, registry)
    events = [
        event
        for span in iter_objects(get_nested(affected, "ranges"))
        for event in iter_objects(get_nested(span, "events"))
        if to_line(get_nested(span, "type")) != "GIT"
    ]
    return Package(
        name=name,
        ecosystem=normalize_ecosystem(registry),
        installed_version=to_line(get_nested(package, "version")),
        affected_range=_format_range(events),
        fixed_version=", ".join(to_lines(events, "fixed")),
        manifest_path=to_line(get_nested(raw, "source")),
        purl=first_nonempty(get_nested(package, "purl"), get_nested(affected, "package", "purl")),
    )


def _find_affected(vulnerability: Any, name: str, registry: str) -> Any:
    for affected in iter_objects(get_nested(vulnerability, "affected")):
        same_name = to_line(get_nested(affected, "package", "name")).lower() == name.lower()
        if same_name and to_line(get_nested(affected, "package", "ecosystem")).lower() == registry.lower():
            return affected
    return None


def _format_range(events: list[dict[str, Any]]) -> str:
    operators = {"introduced": ">=", "fixed": "<", "last_affected": "<="}
    bounds = [
        f"{operator} {version}"
        for event in events
        for name, operator in operators.items()
        if (version := to_line(get_nested(event, name)))
    ]
    return to_line(", ".join(bounds))


OSV_SOURCE = FindingSource("Vulnerabilities in the OSV schema, or what osv-scanner prints.", iter_items, draft_finding)
