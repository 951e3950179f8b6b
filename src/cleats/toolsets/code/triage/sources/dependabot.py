"""Alerts of GitHub Dependabot, as the REST API and the GraphQL API list them."""

from typing import Any

from cleats.toolsets.code.triage.cvss import parse_cvss
from cleats.toolsets.code.triage.records import Package, TriageRecord, Vulnerability
from cleats.toolsets.code.triage.sources.drafts import FindingDraft, FindingSource, iter_findings, join_key
from cleats.toolsets.code.triage.values import (
    find_cve,
    find_cwes,
    first_nonempty,
    get_nested,
    normalize_ecosystem,
    normalize_severity,
    to_line,
    to_lines,
    to_text,
)


def draft_finding(alert: Any) -> FindingDraft:
    """Return the draft of one alert."""
    advisory = get_nested(alert, "security_advisory") or get_nested(alert, "securityAdvisory")
    vulnerability = get_nested(alert, "security_vulnerability") or get_nested(alert, "securityVulnerability")
    vuln = _build_vulnerability(advisory, vulnerability)
    package = _build_package(alert, vulnerability)
    record = TriageRecord(
        status=to_line(get_nested(alert, "state")).lower(),
        repo=to_line(get_nested(alert, "repository", "full_name")),
        vuln=vuln,
        package=package,
    )
    return FindingDraft(_identify_alert(alert, record), record)


def _identify_alert(alert: Any, record: TriageRecord) -> str:
    if number := first_nonempty(get_nested(alert, "id"), get_nested(alert, "number")):
        return f"{record.repo}#{number}" if record.repo else number
    return join_key(record.vuln.vuln_id, record.package.name, record.package.manifest_path)


def _build_vulnerability(advisory: Any, vulnerability: Any) -> Vulnerability:
    ghsa = first_nonempty(get_nested(advisory, "ghsa_id"), get_nested(advisory, "ghsaId"))
    identifiers = to_lines(get_nested(advisory, "identifiers"), "value")
    cve_id = find_cve(get_nested(advisory, "cve_id"), identifiers)
    score = _find_score(advisory)
    severity_word = first_nonempty(get_nested(vulnerability, "severity"), get_nested(advisory, "severity"))
    return Vulnerability(
        vuln_id=ghsa or cve_id,
        cve=cve_id,
        aliases=[alias for alias in dict.fromkeys([cve_id, *identifiers]) if alias and alias != ghsa],
        title=to_line(get_nested(advisory, "summary")),
        description=to_text(get_nested(advisory, "description")),
        severity=normalize_severity(severity_word, score.score if score else None),
        cvss=score,
        cwe=find_cwes(
            to_lines(get_nested(advisory, "cwes"), "cwe_id"), to_lines(get_nested(advisory, "cwes"), "cweId")
        ),
        references=to_lines(get_nested(advisory, "references"), "url"),
    )


def _find_score(advisory: Any) -> Any:
    for rating in (
        get_nested(advisory, "cvss"),
        get_nested(advisory, "cvss_severities", "cvss_v3"),
        get_nested(advisory, "cvss_severities", "cvss_v4"),
    ):
        vector = first_nonempty(get_nested(rating, "vector_string"), get_nested(rating, "vectorString"))
        if score := parse_cvss(vector, get_nested(rating, "score")):
            return score
    return None


def _build_package(alert: Any, vulnerability: Any) -> Package:
    package = get_nested(alert, "dependency", "package") or get_nested(vulnerability, "package")
    fixed = get_nested(vulnerability, "first_patched_version") or get_nested(vulnerability, "firstPatchedVersion")
    return Package(
        name=to_line(get_nested(package, "name")),
        ecosystem=normalize_ecosystem(get_nested(package, "ecosystem")),
        affected_range=first_nonempty(
            get_nested(vulnerability, "vulnerable_version_range"), get_nested(vulnerability, "vulnerableVersionRange")
        ),
        fixed_version=first_nonempty(get_nested(fixed, "identifier"), fixed),
        manifest_path=first_nonempty(
            get_nested(alert, "dependency", "manifest_path"), get_nested(alert, "vulnerableManifestPath")
        ),
    )


DEPENDABOT_SOURCE = FindingSource("Alerts of GitHub's Dependabot, from its REST API.", iter_findings, draft_finding)
