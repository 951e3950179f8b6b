"""Findings with the field names of a record, written by hand or by a script for other scanners.

The fields can be nested as in a record (`{"vuln": {"cve": …}}`) or flat (`{"cve": …, "packageName":
…}`).
"""

from typing import Any

from cleats.toolsets.code.triage.cvss import parse_cvss
from cleats.toolsets.code.triage.records import (
    Asset,
    Exposure,
    Location,
    Package,
    TriageRecord,
    Vulnerability,
)
from cleats.toolsets.code.triage.sources.drafts import FindingDraft, FindingSource, iter_findings, join_key
from cleats.toolsets.code.triage.values import (
    find_advisory_id,
    find_cve,
    find_cwes,
    first_nonempty,
    get_nested,
    iter_objects,
    normalize_ecosystem,
    normalize_severity,
    to_count,
    to_flag,
    to_line,
    to_lines,
    to_text,
    to_text_mapping,
)


def draft_finding(raw: Any) -> FindingDraft:
    """Return the draft of one finding."""
    record = TriageRecord(
        service=to_line(get_nested(raw, "service")),
        env=to_line(get_nested(raw, "env")),
        team=to_line(get_nested(raw, "team")),
        owner=to_line(get_nested(raw, "owner")),
        repo=to_line(get_nested(raw, "repo")),
        status=to_line(get_nested(raw, "status")).lower(),
        labels=to_text_mapping(get_nested(raw, "labels")),
        vuln=_build_vulnerability(raw),
        package=_build_package(raw),
        asset=_build_asset(raw),
        exposure=_build_exposure(raw),
        locations=_build_locations(raw),
    )
    return FindingDraft(_identify_finding(raw, record), record)


def _identify_finding(raw: Any, record: TriageRecord) -> str:
    if explicit_id := first_nonempty(get_nested(raw, "id"), get_nested(raw, "recordId"), get_nested(raw, "findingId")):
        return explicit_id
    package, location = record.package, record.package.manifest_path
    if record.locations and not package.name:
        location = f"{record.locations[0].path}:{record.locations[0].start_line}"
    return join_key(record.vuln.vuln_id, package.name, location, record.asset.asset_id)


def _get_nested_or_flat(raw: Any, part: str, name: str, *flat_names: str) -> Any:
    """Return a value from its part of the record, or from the top level under one of its names."""
    value = get_nested(raw, part, name)
    for field_name in (name, *flat_names):
        value = get_nested(raw, field_name) if value is None else value
    return value


def _build_vulnerability(raw: Any) -> Vulnerability:
    rating = _get_nested_or_flat(raw, "vuln", "cvss")
    score = (
        parse_cvss(
            first_nonempty(get_nested(rating, "vector"), get_nested(rating, "vectorString")),
            get_nested(rating, "score"),
        )
        if isinstance(rating, dict)
        else parse_cvss("", rating)
    )
    vuln_id = first_nonempty(
        _get_nested_or_flat(raw, "vuln", "vulnId"), get_nested(raw, "vuln", "id"), get_nested(raw, "vulnerabilityId")
    )
    aliases = to_lines(_get_nested_or_flat(raw, "vuln", "aliases"))
    cve_id = find_cve(_get_nested_or_flat(raw, "vuln", "cve"), vuln_id, aliases, get_nested(raw, "id"))
    return Vulnerability(
        vuln_id=vuln_id or cve_id or find_advisory_id(get_nested(raw, "id")),
        cve=cve_id,
        aliases=aliases,
        title=first_nonempty(
            _get_nested_or_flat(raw, "vuln", "title"), get_nested(raw, "summary"), get_nested(raw, "name")
        ),
        description=to_text(_get_nested_or_flat(raw, "vuln", "description", "details")),
        severity=normalize_severity(_get_nested_or_flat(raw, "vuln", "severity"), score.score if score else None),
        cvss=score,
        cwe=find_cwes(_get_nested_or_flat(raw, "vuln", "cwe", "cwes")),
        references=to_lines(_get_nested_or_flat(raw, "vuln", "references", "url")),
    )


def _build_package(raw: Any) -> Package:
    package = get_nested(raw, "package")
    return Package(
        name=first_nonempty(package, get_nested(package, "name"), get_nested(raw, "packageName")),
        ecosystem=normalize_ecosystem(
            first_nonempty(
                get_nested(package, "ecosystem"), get_nested(raw, "packageEcosystem"), get_nested(raw, "ecosystem")
            )
        ),
        installed_version=first_nonempty(
            get_nested(package, "installedVersion"),
            get_nested(package, "version"),
            get_nested(raw, "installedVersion"),
            get_nested(raw, "version"),
        ),
        affected_range=to_line(_get_nested_or_flat(raw, "package", "affectedRange")),
        fixed_version=to_line(_get_nested_or_flat(raw, "package", "fixedVersion")),
        manifest_path=to_line(_get_nested_or_flat(raw, "package", "manifestPath")),
        purl=to_line(_get_nested_or_flat(raw, "package", "purl")),
    )


def _build_asset(raw: Any) -> Asset:
    return Asset(
        asset_id=first_nonempty(get_nested(raw, "asset"), _get_nested_or_flat(raw, "asset", "assetId")),
        asset_type=to_line(_get_nested_or_flat(raw, "asset", "assetType")),
        account=to_line(_get_nested_or_flat(raw, "asset", "account")),
        region=to_line(_get_nested_or_flat(raw, "asset", "region")),
        tags=to_text_mapping(_get_nested_or_flat(raw, "asset", "tags")),
    )


def _build_exposure(raw: Any) -> Exposure:
    return Exposure(
        internet_exposed=to_flag(_get_nested_or_flat(raw, "exposure", "internetExposed")),
        public_endpoint=to_line(_get_nested_or_flat(raw, "exposure", "publicEndpoint")),
        data_sensitivity=to_line(_get_nested_or_flat(raw, "exposure", "dataSensitivity")),
        business_criticality=to_line(_get_nested_or_flat(raw, "exposure", "businessCriticality")),
        compensating_controls=to_lines(_get_nested_or_flat(raw, "exposure", "compensatingControls")),
    )


def _build_locations(raw: Any) -> list[Location]:
    locations = [
        Location(
            first_nonempty(get_nested(location, "path"), get_nested(location, "file")),
            to_count(first_nonempty(get_nested(location, "startLine"), get_nested(location, "line"))),
            to_count(get_nested(location, "endLine")),
            to_text(get_nested(location, "snippet")),
        )
        for location in iter_objects(get_nested(raw, "locations") or get_nested(raw, "location"))
    ]
    if not locations and (path := first_nonempty(get_nested(raw, "file"), get_nested(raw, "path"))):
        locations = [Location(path, to_count(get_nested(raw, "line")), to_count(get_nested(raw, "endLine")))]
    return [location for location in locations[:20] if location.path]


GENERIC_SOURCE = FindingSource("Objects in the words of a record, nested or flat.", iter_findings, draft_finding)
MANUAL_SOURCE = FindingSource("The same, written by hand.", iter_findings, draft_finding)
