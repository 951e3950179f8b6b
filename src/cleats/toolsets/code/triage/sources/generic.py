"""Findings in our own words: written by hand, or by a script for a scanner we do not know.

The words are those of a record. They may be nested as in one (`{"vuln": {"cve": …}}`) or flat
(`{"cve": …, "packageName": …}`).
"""

from typing import Any

from cleats.toolsets.code.triage.cvss import cvss
from cleats.toolsets.code.triage.drafts import Draft, Source, key
from cleats.toolsets.code.triage.records import (
    Asset,
    Exposure,
    Location,
    Package,
    Record,
    Vulnerability,
)
from cleats.toolsets.code.triage.sources.listing import listed
from cleats.toolsets.code.triage.values import (
    advisory,
    at,
    count,
    cve,
    cwes,
    ecosystem,
    first,
    flag,
    line,
    lines,
    objects,
    prose,
    severity,
    texts_by_key,
)


def draft(raw: Any) -> Draft:
    """One finding."""
    record = Record(
        service=line(at(raw, "service")),
        env=line(at(raw, "env")),
        team=line(at(raw, "team")),
        owner=line(at(raw, "owner")),
        repo=line(at(raw, "repo")),
        status=line(at(raw, "status")).lower(),
        labels=texts_by_key(at(raw, "labels")),
        vuln=_vulnerability(raw),
        package=_package(raw),
        asset=_asset(raw),
        exposure=_exposure(raw),
        locations=_locations(raw),
    )
    return Draft(_key(raw, record), record)


def _key(raw: Any, record: Record) -> str:
    if named := first(at(raw, "id"), at(raw, "recordId"), at(raw, "findingId")):
        return named
    package, place = record.package, record.package.manifest_path
    if record.locations and not package.name:
        place = f"{record.locations[0].path}:{record.locations[0].start_line}"
    return key(record.vuln.vuln_id, package.name, place, record.asset.asset_id)


def _either(raw: Any, part: str, name: str, *flat: str) -> Any:
    """A value in its part of the record, or at the top under another name."""
    found = at(raw, part, name)
    for other in (name, *flat):
        found = at(raw, other) if found is None else found
    return found


def _vulnerability(raw: Any) -> Vulnerability:
    said = _either(raw, "vuln", "cvss")
    score = (
        cvss(first(at(said, "vector"), at(said, "vectorString")), at(said, "score"))
        if isinstance(said, dict)
        else cvss("", said)
    )
    named = first(_either(raw, "vuln", "vulnId"), at(raw, "vuln", "id"), at(raw, "vulnerabilityId"))
    aliases = lines(_either(raw, "vuln", "aliases"))
    known = cve(_either(raw, "vuln", "cve"), named, aliases, at(raw, "id"))
    return Vulnerability(
        vuln_id=named or known or advisory(at(raw, "id")),
        cve=known,
        aliases=aliases,
        title=first(_either(raw, "vuln", "title"), at(raw, "summary"), at(raw, "name")),
        description=prose(_either(raw, "vuln", "description", "details")),
        severity=severity(_either(raw, "vuln", "severity"), score.score if score else None),
        cvss=score,
        cwe=cwes(_either(raw, "vuln", "cwe", "cwes")),
        references=lines(_either(raw, "vuln", "references", "url")),
    )


def _package(raw: Any) -> Package:
    plain = at(raw, "package")
    return Package(
        name=first(plain, at(plain, "name"), at(raw, "packageName")),
        ecosystem=ecosystem(
            first(at(plain, "ecosystem"), at(raw, "packageEcosystem"), at(raw, "ecosystem"))
        ),
        installed_version=first(
            at(plain, "installedVersion"),
            at(plain, "version"),
            at(raw, "installedVersion"),
            at(raw, "version"),
        ),
        affected_range=line(_either(raw, "package", "affectedRange")),
        fixed_version=line(_either(raw, "package", "fixedVersion")),
        manifest_path=line(_either(raw, "package", "manifestPath")),
        purl=line(_either(raw, "package", "purl")),
    )


def _asset(raw: Any) -> Asset:
    return Asset(
        asset_id=first(at(raw, "asset"), _either(raw, "asset", "assetId")),
        asset_type=line(_either(raw, "asset", "assetType")),
        account=line(_either(raw, "asset", "account")),
        region=line(_either(raw, "asset", "region")),
        tags=texts_by_key(_either(raw, "asset", "tags")),
    )


def _exposure(raw: Any) -> Exposure:
    return Exposure(
        internet_exposed=flag(_either(raw, "exposure", "internetExposed")),
        public_endpoint=line(_either(raw, "exposure", "publicEndpoint")),
        data_sensitivity=line(_either(raw, "exposure", "dataSensitivity")),
        business_criticality=line(_either(raw, "exposure", "businessCriticality")),
        compensating_controls=lines(_either(raw, "exposure", "compensatingControls")),
    )


def _locations(raw: Any) -> list[Location]:
    found = [
        Location(
            first(at(each, "path"), at(each, "file")),
            count(first(at(each, "startLine"), at(each, "line"))),
            count(at(each, "endLine")),
            prose(at(each, "snippet")),
        )
        for each in objects(at(raw, "locations") or at(raw, "location"))
    ]
    if not found and (path := first(at(raw, "file"), at(raw, "path"))):
        found = [Location(path, count(at(raw, "line")), count(at(raw, "endLine")))]
    return [each for each in found[:20] if each.path]


GENERIC = Source("Objects in the words of a record, nested or flat.", listed, draft)
MANUAL = Source("The same, written by hand.", listed, draft)
