"""Findings of Amazon Inspector, as `list-findings` and EventBridge give them."""

from typing import Any

from cleats.toolsets.code.triage.cvss import cvss
from cleats.toolsets.code.triage.drafts import Draft, Source, key
from cleats.toolsets.code.triage.records import (
    Asset,
    Cvss,
    Exposure,
    Location,
    Package,
    Record,
    Vulnerability,
)
from cleats.toolsets.code.triage.sources.listing import listed
from cleats.toolsets.code.triage.values import (
    at,
    count,
    cve,
    cwes,
    ecosystem,
    first,
    line,
    lines,
    objects,
    prose,
    severity,
    texts_by_key,
)

GATEWAY = "AWS::EC2::InternetGateway"
_MANAGERS = {
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


def draft(finding: Any) -> Draft:
    """One finding."""
    details = at(finding, "packageVulnerabilityDetails")
    package = next(objects(at(details, "vulnerablePackages")), None)
    resource = next(objects(at(finding, "resources")), None)
    record = Record(
        status=line(at(finding, "status")).lower(),
        vuln=_vulnerability(finding, details),
        package=_package(package),
        asset=Asset(
            asset_id=line(at(resource, "id")),
            asset_type=line(at(resource, "type")).lower(),
            account=line(at(finding, "awsAccountId")),
            region=line(at(resource, "region")),
            tags=texts_by_key(at(resource, "tags")),
        ),
        exposure=_exposure(finding),
        locations=_locations(finding),
    )
    return Draft(_key(finding, record), record)


def _key(finding: Any, record: Record) -> str:
    named = first(at(finding, "findingArn"), at(finding, "id"))
    return named or key(record.vuln.vuln_id, record.package.name, record.asset.asset_id)


def _vulnerability(finding: Any, details: Any) -> Vulnerability:
    code = at(finding, "codeVulnerabilityDetails")
    named = first(at(details, "vulnerabilityId"), at(code, "detectorId"), at(code, "ruleId"))
    score = _score(finding, details)
    related = lines(at(details, "relatedVulnerabilities"))
    return Vulnerability(
        vuln_id=named,
        cve=cve(named, related),
        aliases=related,
        title=line(at(finding, "title")),
        description=prose(at(finding, "description")),
        severity=severity(at(finding, "severity"), score.score if score else None),
        cvss=score,
        cwe=cwes(at(code, "cwes")),
        references=lines(
            [
                at(details, "sourceUrl"),
                *lines(at(details, "referenceUrls")),
                at(finding, "remediation", "recommendation", "Url"),
            ]
        ),
    )


def _score(finding: Any, details: Any) -> Cvss | None:
    adjusted = at(finding, "inspectorScoreDetails", "adjustedCvss")
    found = cvss(at(adjusted, "scoringVector"), at(adjusted, "score"), at(adjusted, "version"))
    for each in objects(at(details, "cvss")):
        found = found or cvss(at(each, "scoringVector"), at(each, "baseScore"), at(each, "version"))
    return found or cvss("", at(finding, "inspectorScore"))


def _package(package: Any) -> Package:
    manager = line(at(package, "packageManager"))
    fixed = line(at(package, "fixedInVersion"))
    return Package(
        name=line(at(package, "name")),
        ecosystem=_MANAGERS.get(manager.upper()) or ecosystem(manager),
        installed_version=_version(package),
        fixed_version="" if fixed == "NotAvailable" else fixed,
        manifest_path=line(at(package, "filePath")),
    )


def _version(package: Any) -> str:
    """Epoch, version and release, as package managers write them."""
    version, release = line(at(package, "version")), line(at(package, "release"))
    epoch = count(at(package, "epoch"))
    whole = f"{epoch}:{version}" if epoch and version else version
    return f"{whole}-{release}" if whole and release else whole


def _exposure(finding: Any) -> Exposure:
    steps = at(finding, "networkReachabilityDetails", "networkPath", "steps")
    if GATEWAY not in lines(steps, "componentType"):
        return Exposure()
    ports = at(finding, "networkReachabilityDetails", "openPortRange")
    begin, end = line(at(ports, "begin")), line(at(ports, "end"))
    return Exposure(
        internet_exposed=True,
        public_endpoint=f"port {begin}" if begin == end else f"ports {begin}-{end}",
    )


def _locations(finding: Any) -> list[Location]:
    place = at(finding, "codeVulnerabilityDetails", "filePath")
    path = first(at(place, "filePath"), at(place, "fileName"))
    if not path:
        return []
    return [Location(path, count(at(place, "startLine")), count(at(place, "endLine")))]


SOURCE = Source("Findings of Amazon Inspector: `aws inspector2 list-findings`.", listed, draft)
