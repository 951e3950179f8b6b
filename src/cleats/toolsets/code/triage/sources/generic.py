"""Findings with the field names of a record, written by hand or by a script for other scanners.

The fields can be nested as in a record (`{"vuln": {"cve": …}}`) or flat (`{"cve": …, "packageName":
…}`).
"""

from typing import Any, Final

from cleats.toolsets.code.records.model import Asset, Exposure, Location, Package, TriageRecord, Vulnerability
from cleats.toolsets.code.triage.sources.base import (
    FieldTable,
    FindingDraft,
    build_vulnerability,
    join_key,
    parse_cvss,
    read_fields,
    read_line,
    read_text,
    read_value,
)
from cleats.toolsets.code.triage.values import find_advisory_id, find_cve, get_nested, iter_objects, to_count

MAX_LOCATIONS: Final = 20
_RECORD: Final[FieldTable] = {name: name for name in ("service", "env", "team", "owner", "repo", "status", "labels")}
_VULNERABILITY: Final[FieldTable] = {
    "vuln_id": "vuln.vulnId|vulnId vuln.id vulnerabilityId",
    "cve": "vuln.cve|cve[]",
    "aliases": "vuln.aliases|aliases[]",
    "title": "vuln.title|title summary name",
    "description": "vuln.description|description|details",
    "severity": "vuln.severity|severity",
    "cwe": "vuln.cwe|cwe|cwes",
    "references": "vuln.references|references|url[]",
}
_PACKAGE: Final[FieldTable] = {
    "name": "package package.name packageName",
    "ecosystem": "package.ecosystem packageEcosystem ecosystem",
    "installed_version": "package.installedVersion package.version installedVersion version",
    "affected_range": "package.affectedRange|affectedRange",
    "fixed_version": "package.fixedVersion|fixedVersion",
    "manifest_path": "package.manifestPath|manifestPath",
    "purl": "package.purl|purl",
}
_ASSET: Final[FieldTable] = {
    "asset_id": "asset asset.assetId|assetId",
    "asset_type": "asset.assetType|assetType",
    "account": "asset.account|account",
    "region": "asset.region|region",
    "tags": "asset.tags|tags",
}
_EXPOSURE: Final[FieldTable] = {
    "internet_exposed": "exposure.internetExposed|internetExposed",
    "public_endpoint": "exposure.publicEndpoint|publicEndpoint",
    "data_sensitivity": "exposure.dataSensitivity|dataSensitivity",
    "business_criticality": "exposure.businessCriticality|businessCriticality",
    "compensating_controls": "exposure.compensatingControls|compensatingControls[]",
}


def draft_generic_finding(raw: Any) -> FindingDraft:
    """Return the draft of one finding."""
    record = TriageRecord(
        **read_fields(raw, _RECORD),
        vuln=_build_vulnerability(raw),
        package=Package(**read_fields(raw, _PACKAGE)),
        asset=Asset(**read_fields(raw, _ASSET)),
        exposure=Exposure(**read_fields(raw, _EXPOSURE)),
        locations=_build_locations(raw),
    )
    return FindingDraft(read_line(raw, "id recordId findingId") or _build_key(record), record)


def _build_key(record: TriageRecord) -> str:
    package, location = record.package, record.package.manifest_path
    if record.locations and not package.name:
        location = f"{record.locations[0].path}:{record.locations[0].start_line}"
    return join_key(record.vuln.vuln_id, package.name, location, record.asset.asset_id)


def _build_vulnerability(raw: Any) -> Vulnerability:
    rating = read_value(raw, "vuln.cvss|cvss")
    if isinstance(rating, dict):
        score = parse_cvss(read_line(rating, "vector vectorString"), get_nested(rating, "score"))
    else:
        score = parse_cvss("", rating)
    vuln = build_vulnerability(raw, _VULNERABILITY, score)
    vuln.cve = vuln.cve or find_cve(get_nested(raw, "id"))
    vuln.vuln_id = vuln.vuln_id or vuln.cve or find_advisory_id(get_nested(raw, "id"))
    return vuln


def _build_locations(raw: Any) -> list[Location]:
    locations = [
        Location(
            read_line(location, "path file"),
            to_count(read_line(location, "startLine line")),
            to_count(get_nested(location, "endLine")),
            read_text(location, "snippet"),
        )
        for location in iter_objects(get_nested(raw, "locations") or get_nested(raw, "location"))
    ]
    if not locations and (path := read_line(raw, "file path")):
        locations = [Location(path, to_count(get_nested(raw, "line")), to_count(get_nested(raw, "endLine")))]
    return [location for location in locations[:MAX_LOCATIONS] if location.path]
