"""Reports on vulnerable packages: the OSV schema, pip-audit, npm audit and GitHub Dependabot and Amazon Inspector."""

import re
from collections.abc import Iterator
from typing import Any, Final

from cleats.toolsets.code.records.model import Asset, Cvss, Exposure, Location, Package, TriageRecord
from cleats.toolsets.code.triage.values import (
    SYNONYMS,
    FindingDraft,
    build_vulnerability,
    find_advisory_id,
    get_nested,
    iter_objects,
    join_key,
    normalize_ecosystem,
    parse_cvss,
    read_fields,
    read_line,
    read_lines,
    read_text,
    read_value,
    to_count,
    to_line,
    to_lines,
)


def iter_osv_items(document: Any) -> Iterator[Any]:
    """Yield each vulnerability with each package that has it: from osv.dev, its API or osv-scanner."""
    if isinstance(get_nested(document, "results"), list):
        yield from _iter_scanner_items(document["results"])
        return
    if document == {}:
        return  # the answer of the API for a package without vulnerabilities
    vulnerabilities = document if isinstance(document, list) else get_nested(document, "vulns") or document
    for vulnerability in iter_objects(vulnerabilities):
        packages = [get_nested(entry, "package") for entry in iter_objects(get_nested(vulnerability, "affected"))]
        for package in list(filter(None, packages)) or [None]:
            yield {"vulnerability": vulnerability, "package": package}


def _iter_scanner_items(results: list[Any]) -> Iterator[Any]:
    for result in iter_objects(results):
        source = get_nested(result, "source", "path")
        # An answer of the batch API has the vulnerabilities here and does not name packages.
        for vulnerability in iter_objects(get_nested(result, "vulns") or []):
            yield from iter_osv_items(vulnerability)
        for package_result in iter_objects(get_nested(result, "packages") or []):
            package = get_nested(package_result, "package")
            for vulnerability in iter_objects(get_nested(package_result, "vulnerabilities") or []):
                yield {"vulnerability": vulnerability, "package": package, "source": source}


def draft_osv_finding(raw: Any) -> FindingDraft:
    """Return the draft of one vulnerability of one package."""
    vulnerability = get_nested(raw, "vulnerability")
    affected = _find_affected(vulnerability, get_nested(raw, "package"))
    events = [
        event
        for span in iter_objects(get_nested(affected, "ranges"))
        for event in iter_objects(get_nested(span, "events"))
        if to_line(get_nested(span, "type")) != "GIT"
    ]
    package = Package(
        **read_fields({**raw, "affected": affected}, "osv", "package"),
        affected_range=_format_range(events),
        fixed_version=", ".join(to_lines(events, "fixed")),
    )
    vuln = build_vulnerability(raw, "osv", _find_best_score(vulnerability))
    status = "withdrawn" if get_nested(vulnerability, "withdrawn") else ""
    key = join_key(vuln.vuln_id, package.name, package.manifest_path)
    return FindingDraft(key, TriageRecord(status=status, vuln=vuln, package=package))


def _find_best_score(vulnerability: Any) -> Cvss | None:
    """Return the best of several scores; for version 3 the number can be computed."""
    ratings = iter_objects(get_nested(vulnerability, "severity"))
    scores = filter(None, (parse_cvss(get_nested(rating, "score")) for rating in ratings))
    return max(scores, key=lambda score: (score.score is not None, score.version), default=None)


def _find_affected(vulnerability: Any, package: Any) -> Any:
    for affected in iter_objects(get_nested(vulnerability, "affected")):
        same_values = (
            read_line(affected, f"package.{key}").lower() == read_line(package, key).lower()
            for key in ("name", "ecosystem")
        )
        if all(same_values):
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


def iter_pip_items(document: Any) -> Iterator[Any]:
    """Yield each dependency with each of its vulnerabilities, from `pip-audit --format json`."""
    # The first versions printed a bare list.
    for dependency in iter_objects(get_nested(document, "dependencies") if isinstance(document, dict) else document):
        for vulnerability in iter_objects(get_nested(dependency, "vulns") or []):
            identity = {key: get_nested(dependency, key) for key in ("name", "version")}
            yield {"dependency": identity, "vulnerability": vulnerability}


def draft_pip_finding(raw: Any) -> FindingDraft:
    """Return the draft of one vulnerability of one dependency."""
    vuln = build_vulnerability(raw, "pip")
    vuln.vuln_id = vuln.vuln_id or vuln.cve
    vuln.title = to_line(vuln.description.partition("\n")[0], 120)
    package = Package(
        name=read_line(raw, "dependency.name"),
        ecosystem="pypi",
        installed_version=read_line(raw, "dependency.version"),
        fixed_version=", ".join(read_lines(raw, "vulnerability.fix_versions[]")),
    )
    return FindingDraft(join_key(vuln.vuln_id, package.name), TriageRecord(vuln=vuln, package=package))


_LINK_PATTERN: Final = re.compile(r"https?://[^\s()<>\[\]]+")


def iter_npm_items(document: Any) -> Iterator[Any]:
    """Yield every advisory of `npm audit --json` with the package that it is about.

    Version 2, since npm 7, lists a package for each dependency with an advisory; the advisory itself is given where it
    applies. Only those entries are findings; the others describe how the dependency is reached.
    """
    advisories, vulnerabilities = get_nested(document, "advisories"), get_nested(document, "vulnerabilities")
    if isinstance(advisories, dict):
        yield from ({"advisory": advisory} for advisory in advisories.values())
    if isinstance(vulnerabilities, dict):
        for package in vulnerabilities.values():
            for advisory in iter_objects(get_nested(package, "via")):
                package_data = {name: get_nested(package, name) for name in ("nodes", "range", "fixAvailable")}
                yield {"advisory": advisory, "package": package_data}


def draft_npm_finding(raw: Any) -> FindingDraft:
    """Return the draft of one advisory of one package."""
    score = parse_cvss(read_value(raw, "advisory.cvss.vectorString"), read_value(raw, "advisory.cvss.score"))
    vuln = build_vulnerability(raw, "npm", score)
    ghsa = vuln.vuln_id or find_advisory_id(read_value(raw, "advisory.url"))
    number = read_line(raw, "advisory.source advisory.id")
    vuln.vuln_id = ghsa or vuln.cve or (f"npm:{number}" if number else "")
    vuln.aliases = [alias for alias in vuln.aliases if alias != ghsa]
    links = _LINK_PATTERN.findall(read_text(raw, "advisory.references"))
    vuln.references = to_lines([read_value(raw, "advisory.url"), *links])
    package = Package(
        **read_fields(raw, "npm", "package"),
        ecosystem="npm",
        installed_version=read_line(next(iter_objects(read_value(raw, "advisory.findings")), None), "version"),
        manifest_path="package.json",
    )
    fix = read_value(raw, "package.fixAvailable")
    if not package.fixed_version and get_nested(fix, "name") == package.name:
        package.fixed_version = read_line(fix, "version")
    return FindingDraft(join_key(vuln.vuln_id, package.name), TriageRecord(vuln=vuln, package=package))


def draft_dependabot_alert(alert: Any) -> FindingDraft:
    """Return the draft of one alert, as the REST API or the GraphQL API lists it."""
    vulnerability = read_value(alert, "security_vulnerability|securityVulnerability")
    item = {
        "alert": alert,
        "advisory": read_value(alert, "security_advisory|securityAdvisory"),
        "vulnerability": vulnerability,
        "package": read_value(alert, "dependency.package") or get_nested(vulnerability, "package"),
        "fixed": get_nested(vulnerability, "first_patched_version") or get_nested(vulnerability, "firstPatchedVersion"),
    }
    vuln = build_vulnerability(item, "dependabot", _find_dependabot_score(item["advisory"]))
    ghsa = read_line(item, "advisory.ghsa_id advisory.ghsaId")
    vuln.vuln_id = ghsa or vuln.cve
    vuln.aliases = [alias for alias in dict.fromkeys([vuln.cve, *vuln.aliases]) if alias and alias != ghsa]
    package = Package(**read_fields(item, "dependabot", "package"))
    repo = read_line(alert, "repository.full_name")
    if number := read_line(alert, "id number"):
        key = f"{repo}#{number}" if repo else number
    else:
        key = join_key(vuln.vuln_id, package.name, package.manifest_path)
    status = read_line(alert, "state").lower()
    return FindingDraft(key, TriageRecord(status=status, repo=repo, vuln=vuln, package=package))


def _find_dependabot_score(advisory: Any) -> Cvss | None:
    ratings = (read_value(advisory, path) for path in ("cvss", "cvss_severities.cvss_v3", "cvss_severities.cvss_v4"))
    scores = (
        parse_cvss(read_line(rating, "vector_string vectorString"), get_nested(rating, "score")) for rating in ratings
    )
    return next(filter(None, scores), None)


INTERNET_GATEWAY_TYPE: Final = "AWS::EC2::InternetGateway"


def draft_inspector_finding(finding: Any) -> FindingDraft:
    """Return the draft of one finding."""
    details = get_nested(finding, "packageVulnerabilityDetails")
    resource = next(iter_objects(get_nested(finding, "resources")), None)
    item = {**finding, "details": details, "resource": resource}
    asset = Asset(**read_fields(item, "inspector", "asset"))
    asset.asset_type = asset.asset_type.lower()
    record = TriageRecord(
        status=read_line(finding, "status").lower(),
        vuln=build_vulnerability(item, "inspector", _find_score(finding, details)),
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
        ecosystem=SYNONYMS["manager"].get(manager.upper()) or normalize_ecosystem(manager),
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
