"""Findings in two standard formats: SARIF 2.1.0 of static analysers, and CycloneDX, an SBOM or a VEX.

A SARIF result refers to its rule, its message and its file by indexes into the run. `iter_sarif_items` resolves them,
so that every item is self-contained.
"""

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final
from urllib.parse import unquote

from cleats.toolsets.code.records.model import Cvss, Location, Package, TriageRecord
from cleats.toolsets.code.triage.values import (
    FindingDraft,
    build_vulnerability,
    first_nonempty,
    get_nested,
    iter_objects,
    join_key,
    normalize_ecosystem,
    normalize_severity,
    parse_cvss,
    read_line,
    read_lines,
    read_text,
    read_value,
    to_count,
    to_line,
    to_text,
    to_text_mapping,
)

PASSING_RESULT_KINDS: Final = frozenset({"pass", "notApplicable"})
"""Kinds of results that report no problem."""

MAX_LOCATIONS: Final = 20
MAX_SNIPPET_CHARS: Final = 1000
_PLACEHOLDER_PATTERN: Final = re.compile(r"\{\w*\}")
_RULE_ID_PATHS: Final = "result.ruleId result.rule.id rule.id"


def iter_sarif_items(document: Any) -> Iterator[Any]:
    """Yield every result that reports a problem, with its rule and its tool."""
    for run in iter_objects(get_nested(document, "runs")):
        occurrences: Counter[str] = Counter()
        for result in iter_objects(get_nested(run, "results")):
            if read_line(result, "kind") in PASSING_RESULT_KINDS:
                continue
            item = {
                "result": result,
                "rule": _find_rule(run, result),
                "tool": read_line(run, "tool.driver.name") or "analyser",
                "files": _list_file_uris(run, result),
            }
            fingerprint = _compute_fingerprint(item)
            occurrences[fingerprint] += 1
            # A file can contain the same line twice; the turn distinguishes the results.
            yield {**item, "mark": fingerprint, "turn": occurrences[fingerprint]}


def draft_sarif_finding(item: Any) -> FindingDraft:
    """Return the draft of one result."""
    result, rule = get_nested(item, "result"), get_nested(item, "rule")
    message = _render_message(item)
    score = parse_cvss("", read_value(rule, "properties.security-severity"))
    vuln = build_vulnerability(item, "sarif", score)
    if not score:
        level = read_line(item, "result.level rule.defaultConfiguration.level") or "warning"
        vuln.severity = normalize_severity(level)
    short_description = read_line(rule, "shortDescription.text")
    if _PLACEHOLDER_PATTERN.search(short_description) and message:
        short_description = ""  # it is the template of the message
    first_line = to_line(message.partition("\n")[0], 160)
    vuln.title = first_nonempty(short_description, first_line, get_nested(rule, "name"))
    full_description = read_text(rule, "fullDescription.text")
    descriptions = (message, "" if to_line(full_description) == vuln.title else full_description)
    vuln.description = "\n\n".join(dict.fromkeys(filter(None, descriptions)))
    tool = read_line(item, "tool")
    record = TriageRecord(
        status=_read_status(result), vuln=vuln, locations=_build_locations(item), labels={"tool": tool}
    )
    occurrence, fingerprint = to_count(get_nested(item, "turn")), read_line(item, "mark")
    return FindingDraft(f"{fingerprint}#{occurrence}" if occurrence > 1 else fingerprint, record)


def _find_rule(run: Any, result: Any) -> Any:
    tool = get_nested(run, "tool")
    extension = _get_item(get_nested(tool, "extensions"), read_value(result, "rule.toolComponent.index"))
    rules = get_nested(extension or get_nested(tool, "driver"), "rules")
    if indexed_rule := _get_item(rules, read_value(result, "ruleIndex|rule.index")):
        return indexed_rule
    rule_id = read_line(result, "ruleId rule.id")
    return next((rule for rule in iter_objects(rules) if rule_id and read_line(rule, "id") == rule_id), {})


def _get_item(values: Any, index: Any) -> Any:
    if isinstance(values, list) and type(index) is int and 0 <= index < len(values):
        return values[index]
    return None


def _list_file_uris(run: Any, result: Any) -> list[str]:
    uris = []
    for location in list(iter_objects(get_nested(result, "locations")))[:MAX_LOCATIONS]:
        artifact_location = read_value(location, "physicalLocation.artifactLocation")
        artifact = _get_item(get_nested(run, "artifacts"), get_nested(artifact_location, "index"))
        uris.append(read_line(artifact_location, "uri") or read_line(artifact, "location.uri"))
    return uris


def _compute_fingerprint(item: Any) -> str:
    """Return a fingerprint that is the same in every run, even if lines move."""
    result = get_nested(item, "result")
    file = next(iter(get_nested(item, "files")), "")
    fingerprints = to_text_mapping(get_nested(result, "fingerprints")) or to_text_mapping(
        get_nested(result, "partialFingerprints")
    )
    if not fingerprints:
        first_location = next(iter_objects(get_nested(result, "locations")), None)
        region = read_value(first_location, "physicalLocation.region")
        text = read_text(region, "snippet.text") or read_line(region, "startLine")
        fingerprints = {"text": f"{_render_message(item)}\n{text}"}
    joined = "\n".join(f"{name}={value}" for name, value in sorted(fingerprints.items()))
    digest = sha256(joined.encode(errors="replace")).hexdigest()[:24]
    return f"{read_line(item, 'tool')}:{read_line(item, _RULE_ID_PATHS)}:{file}:{digest}"


def _render_message(item: Any) -> str:
    text = read_text(item, "result.message.text result.message.markdown")
    if not text:
        message_id = read_line(item, "result.message.id")
        text = to_text(get_nested(item, "rule", "messageStrings", message_id, "text"))
    for position, value in enumerate(read_lines(item, "result.message.arguments[]")):
        text = text.replace(f"{{{position}}}", value)
    return to_text(text)


def _read_status(result: Any) -> str:
    suppressions = iter_objects(get_nested(result, "suppressions"))
    if any(read_line(suppression, "status") in ("", "accepted") for suppression in suppressions):
        return "suppressed"
    return "absent" if read_line(result, "baselineState") == "absent" else "open"


def _build_locations(item: Any) -> list[Location]:
    locations = []
    for uri, location in zip(
        get_nested(item, "files"), iter_objects(read_value(item, "result.locations")), strict=False
    ):
        region = read_value(location, "physicalLocation.region")
        begin = to_count(get_nested(region, "startLine"))
        end = to_count(get_nested(region, "endLine")) or begin
        snippet = read_text(region, "snippet.text")[:MAX_SNIPPET_CHARS]
        path = unquote(uri.removeprefix("file://"), errors="replace").replace("\\", "/").removeprefix("./")
        locations.append(Location(to_line(path), begin, end, snippet))
    return [location for location in locations if location.path]


MAX_COMPONENT_DEPTH: Final = 16
"""Levels of nested components that are read."""

_CVSS_VERSIONS: Final = {"2": "2.0", "3": "3.0", "31": "3.1", "4": "4.0"}


def iter_cyclonedx_items(document: Any) -> Iterator[Any]:
    """Yield each vulnerability with each component that it affects."""
    if not isinstance(document, dict):
        return
    components = {ref: component_data for ref, component_data in _iter_components(document) if ref}
    for vulnerability in iter_objects(get_nested(document, "vulnerabilities") or []):
        details = {name: value for name, value in vulnerability.items() if name != "affects"}
        for affected in list(iter_objects(get_nested(vulnerability, "affects"))) or [{}]:
            affected_component = components.get(read_line(affected, "ref"))
            component = {name: get_nested(affected_component, name) for name in ("name", "group", "version", "purl")}
            yield {"vulnerability": details, "affects": affected, "component": component}


def _iter_components(document: Any) -> Iterator[tuple[str, Any]]:
    level = [get_nested(document, "metadata", "component"), *iter_objects(get_nested(document, "components"))]
    for _ in range(MAX_COMPONENT_DEPTH):
        components = [component for component in level if isinstance(component, dict)]
        yield from ((read_line(component, "bom-ref purl"), component) for component in components)
        level = [child for component in components for child in iter_objects(get_nested(component, "components"))]


def draft_cyclonedx_finding(raw: Any) -> FindingDraft:
    """Return the draft of one vulnerability of one component."""
    vulnerability = get_nested(raw, "vulnerability")
    score, severity = _find_highest_rating(vulnerability)
    vuln = build_vulnerability(vulnerability, "cyclonedx", score)
    vuln.title = to_line(read_text(vulnerability, "description").partition("\n")[0], 160)
    vuln.severity = normalize_severity(severity, score.score if score else None)
    package = _build_package(raw)
    justification = read_line(vulnerability, "analysis.justification")
    record = TriageRecord(
        status=read_line(vulnerability, "analysis.state").lower(),
        vuln=vuln,
        package=package,
        labels={"justification": justification} if justification else {},
    )
    return FindingDraft(join_key(vuln.vuln_id, package.purl or package.name, package.installed_version), record)


def _find_highest_rating(vulnerability: Any) -> tuple[Cvss | None, str]:
    """Return the highest score and the severity of the same rating."""
    ratings = list(iter_objects(get_nested(vulnerability, "ratings")))
    if not ratings:
        return None, ""
    scores = [
        parse_cvss(
            get_nested(rating, "vector"),
            get_nested(rating, "score"),
            _CVSS_VERSIONS.get(read_line(rating, "method").removeprefix("CVSSv")),
        )
        for rating in ratings
    ]
    highest = max(range(len(ratings)), key=lambda number: (cvss.score or 0.0) if (cvss := scores[number]) else 0.0)
    severities = [read_line(rating, "severity") for rating in ratings]
    return scores[highest], severities[highest] or next(filter(None, severities), "")


def _build_package(raw: Any) -> Package:
    component = get_nested(raw, "component")
    ref = read_line(raw, "affects.ref")
    purl = read_line(component, "purl") or (ref if ref.startswith("pkg:") else "")
    registry, name, version = _parse_purl(purl)
    group, plain_name = read_line(component, "group"), read_line(component, "name")
    separator = ":" if registry == "maven" else "/"
    return Package(
        name=name or (f"{group}{separator}{plain_name}" if group and plain_name else plain_name) or ref,
        ecosystem=normalize_ecosystem(registry),
        installed_version=read_line(component, "version") or version,
        affected_range=", ".join(read_lines(raw, "affects.versions[].range")),
        purl=purl,
    )


def _parse_purl(purl: str) -> tuple[str, str, str]:
    if not purl.startswith("pkg:"):
        return "", "", ""
    path = purl.removeprefix("pkg:").partition("?")[0].partition("#")[0]
    registry, _, rest = path.partition("/")
    name, _, version = rest.partition("@")
    full_name = unquote(name)
    if registry == "maven":
        full_name = full_name.replace("/", ":")
    return registry.lower(), full_name, unquote(version)
