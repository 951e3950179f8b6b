"""Alerts of GitHub's Dependabot, as the REST API and the GraphQL API list them."""

from typing import Any

from cleats.toolsets.code.triage.cvss import cvss
from cleats.toolsets.code.triage.drafts import Draft, Source, key
from cleats.toolsets.code.triage.records import Package, Record, Vulnerability
from cleats.toolsets.code.triage.sources.listing import listed
from cleats.toolsets.code.triage.values import (
    at,
    cve,
    cwes,
    ecosystem,
    first,
    line,
    lines,
    prose,
    severity,
)


def draft(alert: Any) -> Draft:
    """One alert."""
    advisory = at(alert, "security_advisory") or at(alert, "securityAdvisory")
    vulnerable = at(alert, "security_vulnerability") or at(alert, "securityVulnerability")
    vuln = _vulnerability(advisory, vulnerable)
    package = _package(alert, vulnerable)
    record = Record(
        status=line(at(alert, "state")).lower(),
        repo=line(at(alert, "repository", "full_name")),
        vuln=vuln,
        package=package,
    )
    return Draft(_key(alert, record), record)


def _key(alert: Any, record: Record) -> str:
    if number := first(at(alert, "id"), at(alert, "number")):
        return f"{record.repo}#{number}" if record.repo else number
    return key(record.vuln.vuln_id, record.package.name, record.package.manifest_path)


def _vulnerability(advisory: Any, vulnerable: Any) -> Vulnerability:
    ghsa = first(at(advisory, "ghsa_id"), at(advisory, "ghsaId"))
    known = lines(at(advisory, "identifiers"), "value")
    named = cve(at(advisory, "cve_id"), known)
    score = _score(advisory)
    word = first(at(vulnerable, "severity"), at(advisory, "severity"))
    return Vulnerability(
        vuln_id=ghsa or named,
        cve=named,
        aliases=[each for each in dict.fromkeys([named, *known]) if each and each != ghsa],
        title=line(at(advisory, "summary")),
        description=prose(at(advisory, "description")),
        severity=severity(word, score.score if score else None),
        cvss=score,
        cwe=cwes(lines(at(advisory, "cwes"), "cwe_id"), lines(at(advisory, "cwes"), "cweId")),
        references=lines(at(advisory, "references"), "url"),
    )


def _score(advisory: Any) -> Any:
    for found in (
        at(advisory, "cvss"),
        at(advisory, "cvss_severities", "cvss_v3"),
        at(advisory, "cvss_severities", "cvss_v4"),
    ):
        vector = first(at(found, "vector_string"), at(found, "vectorString"))
        if score := cvss(vector, at(found, "score")):
            return score
    return None


def _package(alert: Any, vulnerable: Any) -> Package:
    named = at(alert, "dependency", "package") or at(vulnerable, "package")
    fixed = at(vulnerable, "first_patched_version") or at(vulnerable, "firstPatchedVersion")
    return Package(
        name=line(at(named, "name")),
        ecosystem=ecosystem(at(named, "ecosystem")),
        affected_range=first(
            at(vulnerable, "vulnerable_version_range"), at(vulnerable, "vulnerableVersionRange")
        ),
        fixed_version=first(at(fixed, "identifier"), fixed),
        manifest_path=first(
            at(alert, "dependency", "manifest_path"), at(alert, "vulnerableManifestPath")
        ),
    )


SOURCE = Source("Alerts of GitHub's Dependabot, from its REST API.", listed, draft)
