"""Findings of Amazon Inspector, as `aws inspector2 list-findings` and EventBridge provide them."""

from typing import Any, Final

from cleats.toolsets.code.records.model import Asset, Cvss, Exposure, Location, Package, TriageRecord
from cleats.toolsets.code.triage.sources.base import (
    FieldTable,
    FindingDraft,
    build_vulnerability,
    join_key,
    parse_cvss,
    read_fields,
    read_line,
    read_lines,
    read_value,
)
from cleats.toolsets.code.triage.values import get_nested, iter_objects, normalize_ecosystem, to_count

INTERNET_GATEWAY_TYPE: Final = "AWS::EC2::InternetGateway"
_MANAGERS_BY_ECOSYSTEM: Final = {
    "pypi": ("PYTHONPKG", "PIP", "PIPENV", "POETRY"),
    "npm": ("NODEPKG", "NPM", "YARN", "PNPM"),
    "rubygems": ("BUNDLER", "GEMSPEC"),
    "cargo": ("CARGO", "RUSTBINARY"),
    "composer": ("COMPOSER",),
    "go": ("GOBINARY", "GOMOD"),
    "maven": ("JAR", "POM"),
    "nuget": ("NUGET", "DOTNETPKG"),
}
_ECOSYSTEMS_BY_MANAGER: Final = {
    manager: ecosystem for ecosystem, managers in _MANAGERS_BY_ECOSYSTEM.items() for manager in managers
}
_VULNERABILITY: Final[FieldTable] = {
    "vuln_id": "details.vulnerabilityId codeVulnerabilityDetails.detectorId codeVulnerabilityDetails.ruleId",
    "aliases": "details.relatedVulnerabilities[]",
    "title": "title",
    "description": "description",
    "severity": "severity",
    "cwe": "codeVulnerabilityDetails.cwes",
    "references": "details.sourceUrl details.referenceUrls[] remediation.recommendation.Url",
}
_ASSET: Final[FieldTable] = {
    "asset_id": "resource.id",
    "asset_type": "resource.type",
    "account": "awsAccountId",
    "region": "resource.region",
    "tags": "resource.tags",
}


def draft_inspector_finding(finding: Any) -> FindingDraft:
    """Return the draft of one finding."""
    details = get_nested(finding, "packageVulnerabilityDetails")
    resource = next(iter_objects(get_nested(finding, "resources")), None)
    item = {**finding, "details": details, "resource": resource}
    asset = Asset(**read_fields(item, _ASSET))
    asset.asset_type = asset.asset_type.lower()
    record = TriageRecord(
        status=read_line(finding, "status").lower(),
        vuln=build_vulnerability(item, _VULNERABILITY, _find_score(finding, details)),
        package=_build_package(next(iter_objects(get_nested(details, "vulnerablePackages")), None)),
        asset=asset,
        exposure=_build_exposure(get_nested(finding, "networkReachabilityDetails")),
        locations=_build_locations(read_value(finding, "codeVulnerabilityDetails.filePath")),
    )
    fallback_key = join_key(record.vuln.vuln_id, record.package.name, asset.asset_id)
    return FindingDraft(read_line(finding, "findingArn id") or fallback_key, record)


def _find_score(finding: Any, details: Any) -> Cvss | None:
    ratings = [read_value(finding, "inspectorScoreDetails.adjustedCvss"), *iter_objects(get_nested(details, "cvss"))]
    for number, rating in enumerate(ratings):
        score = get_nested(rating, "baseScore" if number else "score")
        if cvss := parse_cvss(get_nested(rating, "scoringVector"), score, get_nested(rating, "version")):
            return cvss
    return parse_cvss("", get_nested(finding, "inspectorScore"))


def _build_package(package: Any) -> Package:
    manager, fixed_version = read_line(package, "packageManager"), read_line(package, "fixedInVersion")
    return Package(
        name=read_line(package, "name"),
        ecosystem=_ECOSYSTEMS_BY_MANAGER.get(manager.upper()) or normalize_ecosystem(manager),
        installed_version=_format_version(package),
        fixed_version="" if fixed_version == "NotAvailable" else fixed_version,
        manifest_path=read_line(package, "filePath"),
    )


def _format_version(package: Any) -> str:
    """Join epoch, version and release as package managers do."""
    version, release = read_line(package, "version"), read_line(package, "release")
    epoch = to_count(get_nested(package, "epoch"))
    full_version = f"{epoch}:{version}" if epoch and version else version
    return f"{full_version}-{release}" if full_version and release else full_version


def _build_exposure(reachability: Any) -> Exposure:
    if INTERNET_GATEWAY_TYPE not in read_lines(reachability, "networkPath.steps[].componentType"):
        return Exposure()
    begin, end = read_line(reachability, "openPortRange.begin"), read_line(reachability, "openPortRange.end")
    return Exposure(internet_exposed=True, public_endpoint=f"port {begin}" if begin == end else f"ports {begin}-{end}")


def _build_locations(file_path: Any) -> list[Location]:
    path = read_line(file_path, "filePath fileName")
    begin, end = to_count(get_nested(file_path, "startLine")), to_count(get_nested(file_path, "endLine"))
    return [Location(path, begin, end)] if path else []
