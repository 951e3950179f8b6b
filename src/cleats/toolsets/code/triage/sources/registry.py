"""All sources of findings by name, the generic one, and the recognition of documents in a wrong format.

The generic source has the field names of a record, written by hand or by a script for other scanners. The fields can be
nested as in a record (`{"vuln": {"cve": …}}`) or flat (`{"cve": …, "packageName": …}`).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from cleats.toolsets.code.records.model import Asset, Exposure, Location, Package, TriageRecord, Vulnerability
from cleats.toolsets.code.triage.sources.package_audits import (
    draft_dependabot_alert,
    draft_inspector_finding,
    draft_npm_finding,
    draft_osv_finding,
    draft_pip_finding,
    iter_npm_items,
    iter_osv_items,
    iter_pip_items,
)
from cleats.toolsets.code.triage.sources.standard_formats import (
    draft_cyclonedx_finding,
    draft_sarif_finding,
    iter_cyclonedx_items,
    iter_sarif_items,
)
from cleats.toolsets.code.triage.values import (
    FindingDraft,
    FindingSource,
    build_vulnerability,
    find_advisory_id,
    find_cve,
    get_nested,
    iter_findings,
    iter_objects,
    join_key,
    parse_cvss,
    read_fields,
    read_line,
    read_text,
    read_value,
    to_count,
)

MAX_LOCATIONS: Final = 20


def draft_generic_finding(raw: Any) -> FindingDraft:
    """Return the draft of one finding."""
    record = TriageRecord(
        **read_fields(raw, "generic", "record"),
        vuln=_build_vulnerability(raw),
        package=Package(**read_fields(raw, "generic", "package")),
        asset=Asset(**read_fields(raw, "generic", "asset")),
        exposure=Exposure(**read_fields(raw, "generic", "exposure")),
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
    vuln = build_vulnerability(raw, "generic", score)
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


SOURCES_BY_NAME: Final[Mapping[str, FindingSource]] = {
    "dependabot": FindingSource(iter_findings, draft_dependabot_alert),
    "aws_inspector": FindingSource(iter_findings, draft_inspector_finding),
    "sarif": FindingSource(iter_sarif_items, draft_sarif_finding),
    "osv": FindingSource(iter_osv_items, draft_osv_finding),
    "pip_audit": FindingSource(iter_pip_items, draft_pip_finding),
    "npm_audit": FindingSource(iter_npm_items, draft_npm_finding),
    "cyclonedx": FindingSource(iter_cyclonedx_items, draft_cyclonedx_finding),
    "generic": FindingSource(iter_findings, draft_generic_finding),
    "manual": FindingSource(iter_findings, draft_generic_finding),
}

FormatCheck: TypeAlias = Callable[[Any], bool]


class KnownFormat(NamedTuple):
    """A recognizable format, and the advice for a document in it."""

    name: str
    advice: str
    matches: FormatCheck
    required_keys: str = ""
    """The keys that every document of a source has, for hints; empty for a foreign format."""
    matches_empty: FormatCheck = lambda _document: False
    """A weaker check for documents that match no known format, such as reports without findings."""


def is_recognizable(source: str) -> bool:
    """Return True if documents of the source have a recognizable format."""
    return source in _FORMATS_BY_SOURCE


def can_come_from(source: str, document: Any) -> bool:
    """Return True if a document can be output of the source, with or without findings."""
    if source in UNCHECKED_SOURCES:
        return True
    known_format = detect_format(document)
    if known_format is not None:
        return known_format.name == source
    return source not in _FORMATS_BY_SOURCE or _FORMATS_BY_SOURCE[source].matches_empty(document)


def build_format_hint(source: str, document: Any) -> str:
    """Return a hint for a document that is not output of the source."""
    known_format = detect_format(document)
    if known_format is None:
        return f"Check what wrote the file: {source} always has {_FORMATS_BY_SOURCE[source].required_keys}."
    return f"This looks like {known_format.advice}"


def detect_format(document: Any) -> KnownFormat | None:
    """Return the format of a document, or None if it is not recognized."""
    return next((known_format for known_format in KNOWN_FORMATS if known_format.matches(document)), None)


def _is_sarif(document: Any) -> bool:
    runs = get_nested(document, "runs")
    if not isinstance(runs, list):
        return False
    return isinstance(get_nested(document, "version"), str) or any("tool" in run for run in iter_objects(runs))


def _is_pip_audit(document: Any) -> bool:
    dependencies = get_nested(document, "dependencies") if isinstance(document, dict) else document
    return _has_rows_with("vulns")(dependencies) or _has_rows_with("skip_reason")(dependencies)


def _is_osv(document: Any) -> bool:
    if isinstance(document, list):
        return any(map(_is_osv_entry, document))
    results = get_nested(document, "results")
    has_results = _has_rows_with("packages")(results) or _has_rows_with("vulns")(results)
    return has_results or _has_keys(vulns=list)(document) or _is_osv_entry(document)


def _is_osv_entry(document: Any) -> bool:
    typical_keys = ("affected", "modified", "published", "schema_version", "aliases")
    return _has_keys(id=str)(document) and any(key in document for key in typical_keys)


def _has_keys(**kinds: type) -> FormatCheck:
    """Return a check that these keys have values of these types."""
    return lambda document: all(isinstance(get_nested(document, key), kinds[key]) for key in kinds)


def _has_rows_with(*keys: str) -> FormatCheck:
    """Return a check that the document is a list with an object that has these keys."""
    return lambda document: (
        isinstance(document, list) and any(all(key in row for key in keys) for row in iter_objects(document))
    )


UNCHECKED_SOURCES: Final = frozenset({"generic", "manual"})
"""Sources that accept any document."""

KNOWN_FORMATS: Final = (
    KnownFormat("bandit", "bandit's JSON: run `bandit -f sarif`.", _has_keys(results=list, metrics=dict)),
    KnownFormat("semgrep", "Semgrep's JSON: run `semgrep --sarif`.", _has_keys(results=list, paths=dict)),
    KnownFormat("trivy", "Trivy's JSON: run `trivy --format sarif`.", _has_keys(SchemaVersion=int)),
    KnownFormat("grype", "Grype's JSON: run `grype -o sarif`.", _has_keys(matches=list, descriptor=dict)),
    KnownFormat(
        "ruff", "ruff's JSON: run `ruff check --output-format sarif`.", _has_rows_with("code", "filename", "noqa_row")
    ),
    KnownFormat("spdx", "SPDX, which lists packages and no findings.", _has_keys(spdxVersion=str)),
    KnownFormat("npm_error", "an error of npm: look at its message.", _has_keys(error=dict)),
    KnownFormat("sarif", "SARIF: name the source `sarif`.", _is_sarif, "`version` and `runs`"),
    KnownFormat(
        "cyclonedx",
        "CycloneDX: name the source `cyclonedx`.",
        lambda document: bool(get_nested(document, "bomFormat") == "CycloneDX"),
        '`"bomFormat": "CycloneDX"`',
    ),
    KnownFormat(
        "npm_audit",
        "what npm audit writes: name the source `npm_audit`.",
        lambda document: _has_keys(advisories=dict)(document) or _has_keys(vulnerabilities=dict)(document),
        "`vulnerabilities` or `advisories`",
    ),
    KnownFormat(
        "pip_audit",
        "what pip-audit writes: name the source `pip_audit`.",
        _is_pip_audit,
        "`dependencies`",
        lambda document: document == [] or _has_keys(dependencies=list)(document),
    ),
    KnownFormat(
        "osv",
        "OSV: name the source `osv`.",
        _is_osv,
        "`results` or `vulns`",
        # The OSV API answers `{}` for a package without vulnerabilities.
        lambda document: document in ([], {}) or _has_keys(results=list)(document) or _has_keys(id=str)(document),
    ),
)
"""The formats that callers provide, those with the most reliable checks first."""

_FORMATS_BY_SOURCE: Final = {
    known_format.name: known_format for known_format in KNOWN_FORMATS if known_format.required_keys
}
