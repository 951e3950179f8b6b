"""Findings of Amazon Inspector, as `list-findings` and EventBridge provide them."""

from typing import Any

from cleats.toolsets.code.triage.cvss import parse_cvss
from cleats.toolsets.code.triage.records import (
    Asset,
    Cvss,
    Exposure,
    Location,
    Package,
    TriageRecord,
    Vulnerability,
)
from cleats.toolsets.code.triage.sources.drafts import FindingDraft, FindingSource, iter_findings, join_key
from cleats.toolsets.code.triage.values import (
    find_cve,
    find_cwes,
    first_nonempty,
    get_nested,
    iter_objects,
    normalize_ecosystem,
    normalize_severity,
    to_count,
    to_line,
    to_lines,
    to_text,
    to_text_mapping,
)

INTERNET_GATEWAY_TYPE = "AWS::EC2::InternetGateway"
_ECOSYSTEMS_BY_MANAGER = {
    "PYTHONPKG": "pypi",
    "PIP": "pypi",
    "PIPENV": "pypi",
    "POETRY": "pypi",
    "NODEPKG": "npm",
    "NPM": "npm",
    "YARN": "npm",
    "PNPM": "npm",
    "BUNDLER": "rubygems",
    "GEMSPEC": "rubygems",
    "CARGO": "cargo",
    "RUSTBINARY": "cargo",
    "COMPOSER": "composer",
    "GOBINARY": "go",
    "GOMOD": "go",
    "JAR": "maven",
    "POM": "maven",
    "NUGET": "nuget",
    "DOTNETPKG": "nuget",
}


def draft_finding(finding: Any) -> FindingDraft:
    """Return the draft of one finding."""
    details = get_nested(finding, "packageVulnerabilityDetails")
    package = next(iter_objects(get_nested(details, "vulnerablePackages")), None)
    resource = next(iter_objects(get_nested(finding, "resources")), None)
    record = TriageRecord(
        status=to_line(get_nested(finding, "status")).lower(),
        vuln=_build_vulnerability(finding, details),
        package=_build_package(package),
        asset=Asset(
            asset_id=to_line(get_nested(resource, "id")),
            asset_type=to_line(get_nested(resource, "type")).lower(),
            account=to_line(get_nested(finding, "awsAccountId")),
            region=to_line(get_nested(resource, "region")),
            tags=to_text_mapping(get_nested(resource, "tags")),
        ),
        exposure=_build_exposure(finding),
        locations=_build_locations(finding),
    )
    return FindingDraft(_identify_finding(finding, record), record)


def _identify_finding(finding: Any, record: TriageRecord) -> str:
    finding_id = first_nonempty(get_nested(finding, "findingArn"), get_nested(finding, "id"))
    return finding_id or join_key(record.vuln.vuln_id, record.package.name, record.asset.asset_id)


def _build_vulnerability(finding: Any, details: Any) -> Vulnerability:
    code = get_nested(finding, "codeVulnerabilityDetails")
    vuln_id = first_nonempty(
        get_nested(details, "vulnerabilityId"), get_nested(code, "detectorId"), get_nested(code, "ruleId")
    )
    score = _find_score(finding, details)
    related = to_lines(get_nested(details, "relatedVulnerabilities"))
    return Vulnerability(
        vuln_id=vuln_id,
        cve=find_cve(vuln_id, related),
        aliases=related,
        title=to_line(get_nested(finding, "title")),
        description=to_text(get_nested(finding, "description")),
        severity=normalize_severity(get_nested(finding, "severity"), score.score if score else None),
        cvss=score,
        cwe=find_cwes(get_nested(code, "cwes")),
        references=to_lines(
            [
                get_nested(details, "sourceUrl"),
                *to_lines(get_nested(details, "referenceUrls")),
                get_nested(finding, "remediation", "recommendation", "Url"),
            ]
        ),
    )


def _find_score(finding: Any, details: Any) -> Cvss | None:
    adjusted = get_nested(finding, "inspectorScoreDetails", "adjustedCvss")
    score = parse_cvss(
        get_nested(adjusted, "scoringVector"), get_nested(adjusted, "score"), get_nested(adjusted, "version")
    )
    for rating in iter_objects(get_nested(details, "cvss")):
        score = score or parse_cvss(
            get_nested(rating, "scoringVector"), get_nested(rating, "baseScore"), get_nested(rating, "version")
        )
    return score or parse_cvss("", get_nested(finding, "inspectorScore"))


def _build_package(package: Any) -> Package:
    manager = to_line(get_nested(package, "packageManager"))
    fixed = to_line(get_nested(package, "fixedInVersion"))
    return Package(
        name=to_line(get_nested(package, "name")),
        ecosystem=_ECOSYSTEMS_BY_MANAGER.get(manager.upper()) or normalize_ecosystem(manager),
        installed_version=_format_version(package),
        fixed_version="" if fixed == "NotAvailable" else fixed,
        manifest_path=to_line(get_nested(package, "filePath")),
    )


def _format_version(package: Any) -> str:
    """Join epoch, version and release as package managers do."""
    version, release = to_line(get_nested(package, "version")), to_line(get_nested(package, "release"))
    epoch = to_count(get_nested(package, "epoch"))
    full_version = f"{epoch}:{version}" if epoch and version else version
    return f"{full_version}-{release}" if full_version and release else full_version


def _build_exposure(finding: Any) -> Exposure:
    steps = get_nested(finding, "networkReachabilityDetails", "networkPath", "steps")
    if INTERNET_GATEWAY_TYPE not in to_lines(steps, "componentType"):
        return Exposure()
    ports = get_nested(finding, "networkReachabilityDetails", "openPortRange")
    begin, end = to_line(get_nested(ports, "begin")), to_line(get_nested(ports, "end"))
    return Exposure(
        internet_exposed=True,
        public_endpoint=f"port {begin}" if begin == end else f"ports {begin}-{end}",
    )


def _build_locations(finding: Any) -> list[Location]:
    file_path = get_nested(finding, "codeVulnerabilityDetails", "filePath")
    path = first_nonempty(get_nested(file_path, "filePath"), get_nested(file_path, "fileName"))
    if not path:
        return []
    return [Location(path, to_count(get_nested(file_path, "startLine")), to_count(get_nested(file_path, "endLine")))]


AWS_INSPECTOR_SOURCE = FindingSource(
    "Findings of Amazon Inspector: `aws inspector2 list-findings`.", iter_findings, draft_finding
)
