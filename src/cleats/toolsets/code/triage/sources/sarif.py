"""Results in SARIF 2.1.0, the common format of static analysers.

A result refers to its rule, its message and its file by indexes into the run. `iter_items` resolves
them, so that every item is self-contained.
"""

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final
from urllib.parse import unquote

from cleats.toolsets.code.triage.cvss import parse_cvss
from cleats.toolsets.code.triage.records import Location, TriageRecord, Vulnerability
from cleats.toolsets.code.triage.sources.drafts import FindingDraft, FindingSource
from cleats.toolsets.code.triage.values import (
    find_cve,
    find_cwes,
    first_nonempty,
    get_nested,
    iter_objects,
    normalize_severity,
    to_count,
    to_line,
    to_lines,
    to_text,
    to_text_mapping,
)

PASSING_RESULT_KINDS: Final = frozenset({"pass", "notApplicable"})
"""Kinds of results that report no problem."""

MAX_LOCATIONS: Final = 20
_PLACEHOLDER_PATTERN: Final = re.compile(r"\{\w*\}")
MAX_SNIPPET_CHARS: Final = 1000


def iter_items(document: Any) -> Iterator[Any]:
    """Yield every result that reports a problem, with its rule and its tool."""
    for run in iter_objects(get_nested(document, "runs")):
        occurrences: Counter[str] = Counter()
        for result in iter_objects(get_nested(run, "results")):
            if to_line(get_nested(result, "kind")) in PASSING_RESULT_KINDS:
                continue
            item = {
                "result": result,
                "rule": _find_rule(run, result),
                "tool": first_nonempty(get_nested(run, "tool", "driver", "name"), "analyser"),
                "files": _list_file_uris(run, result),
            }
            fingerprint = _compute_fingerprint(item)
            occurrences[fingerprint] += 1
            # A file can contain the same line twice; the turn distinguishes the results.
            yield {**item, "mark": fingerprint, "turn": occurrences[fingerprint]}


def draft_finding(item: Any) -> FindingDraft:
    """Return the draft of one result."""
    result, rule, tool = get_nested(item, "result"), get_nested(item, "rule"), to_line(get_nested(item, "tool"))
    rule_id = _read_rule_id(item)
    message = _render_message(result, rule)
    score = parse_cvss("", get_nested(rule, "properties", "security-severity"))
    short_description = to_line(get_nested(rule, "shortDescription", "text"))
    title = first_nonempty(
        # A description with placeholders is the template of the message.
        "" if _PLACEHOLDER_PATTERN.search(short_description) and message else short_description,
        to_line(message.partition("\n")[0], 160),
        get_nested(rule, "name"),
    )
    vuln = Vulnerability(
        vuln_id=rule_id,
        cve=find_cve(rule_id),
        title=title,
        description="\n\n".join(dict.fromkeys(filter(None, (message, _read_full_description(rule, title))))),
        severity=normalize_severity("", score.score) if score else normalize_severity(_read_level(result, rule)),
        cvss=score,
        cwe=find_cwes(
            to_lines(get_nested(rule, "properties", "tags")),
            to_lines(get_nested(rule, "properties", "cwe")),
            to_lines(get_nested(rule, "relationships"), "target", "id"),
            to_lines(get_nested(result, "taxa"), "id"),
        ),
        references=to_lines([get_nested(rule, "helpUri"), get_nested(result, "hostedViewerUri")]),
    )
    record = TriageRecord(
        status=_read_status(result), vuln=vuln, locations=_build_locations(item), labels={"tool": tool}
    )
    occurrence = to_count(get_nested(item, "turn"))
    fingerprint = to_line(get_nested(item, "mark"))
    return FindingDraft(f"{fingerprint}#{occurrence}" if occurrence > 1 else fingerprint, record)


def _find_rule(run: Any, result: Any) -> Any:
    """Return the rule of a result, looked up by index or by id."""
    tool = get_nested(run, "tool")
    extensions = get_nested(tool, "extensions")
    component = _get_item(extensions, get_nested(result, "rule", "toolComponent", "index")) or get_nested(
        tool, "driver"
    )
    rules = get_nested(component, "rules")
    index = get_nested(result, "ruleIndex")
    indexed_rule = _get_item(rules, get_nested(result, "rule", "index") if index is None else index)
    if indexed_rule:
        return indexed_rule
    rule_id = first_nonempty(get_nested(result, "ruleId"), get_nested(result, "rule", "id"))
    return next((rule for rule in iter_objects(rules) if rule_id and to_line(get_nested(rule, "id")) == rule_id), {})


def _get_item(values: Any, index: Any) -> Any:
    if isinstance(values, list) and type(index) is int and 0 <= index < len(values):
        return values[index]
    return None


def _list_file_uris(run: Any, result: Any) -> list[str]:
    """Return the file URIs of the locations of a result, in order."""
    artifacts = get_nested(run, "artifacts")
    uris = []
    for location in list(iter_objects(get_nested(result, "locations")))[:MAX_LOCATIONS]:
        artifact_location = get_nested(location, "physicalLocation", "artifactLocation")
        artifact = _get_item(artifacts, get_nested(artifact_location, "index"))
        uris.append(first_nonempty(get_nested(artifact_location, "uri"), get_nested(artifact, "location", "uri")))
    return uris


def _read_rule_id(item: Any) -> str:
    rule = get_nested(item, "rule")
    return first_nonempty(
        get_nested(item, "result", "ruleId"), get_nested(item, "result", "rule", "id"), get_nested(rule, "id")
    )


def _compute_fingerprint(item: Any) -> str:
    """Return a fingerprint that is the same in every run, even if lines move."""
    result = get_nested(item, "result")
    file = next(iter(get_nested(item, "files")), "")
    fingerprints = to_text_mapping(get_nested(result, "fingerprints")) or to_text_mapping(
        get_nested(result, "partialFingerprints")
    )
    if not fingerprints:
        region = get_nested(next(iter_objects(get_nested(result, "locations")), None), "physicalLocation", "region")
        text = to_text(get_nested(region, "snippet", "text")) or to_line(get_nested(region, "startLine"))
        fingerprints = {"text": f"{_render_message(result, get_nested(item, 'rule'))}\n{text}"}
    joined = "\n".join(f"{name}={value}" for name, value in sorted(fingerprints.items()))
    digest = sha256(joined.encode(errors="replace")).hexdigest()[:24]
    return f"{to_line(get_nested(item, 'tool'))}:{_read_rule_id(item)}:{file}:{digest}"


def _render_message(result: Any, rule: Any) -> str:
    message = get_nested(result, "message")
    text = to_text(get_nested(message, "text")) or to_text(get_nested(message, "markdown"))
    if not text:
        text = to_text(get_nested(rule, "messageStrings", to_line(get_nested(message, "id")), "text"))
    for position, value in enumerate(to_lines(get_nested(message, "arguments"))):
        text = text.replace(f"{{{position}}}", value)
    return to_text(text)


def _read_full_description(rule: Any, title: str) -> str:
    description = to_text(get_nested(rule, "fullDescription", "text"))
    return "" if to_line(description) == title else description


def _read_level(result: Any, rule: Any) -> str:
    return first_nonempty(get_nested(result, "level"), get_nested(rule, "defaultConfiguration", "level"), "warning")


def _read_status(result: Any) -> str:
    suppression_statuses = [
        to_line(get_nested(suppression, "status")) for suppression in iter_objects(get_nested(result, "suppressions"))
    ]
    if any(status in ("", "accepted") for status in suppression_statuses):
        return "suppressed"
    return "absent" if to_line(get_nested(result, "baselineState")) == "absent" else "open"


def _build_locations(item: Any) -> list[Location]:
    sarif_locations = iter_objects(get_nested(item, "result", "locations"))
    locations = []
    for file, sarif_location in zip(get_nested(item, "files"), sarif_locations, strict=False):
        region = get_nested(sarif_location, "physicalLocation", "region")
        begin = to_count(get_nested(region, "startLine"))
        end = to_count(get_nested(region, "endLine")) or begin
        snippet = to_text(get_nested(region, "snippet", "text"))[:MAX_SNIPPET_CHARS]
        locations.append(Location(_path_from_uri(file), begin, end, snippet))
    return [location for location in locations if location.path]


def _path_from_uri(uri: str) -> str:
    """Return the path in a file URI."""
    path = unquote(uri.removeprefix("file://"), errors="replace")
    return to_line(path.replace("\\", "/").removeprefix("./"))


SARIF_SOURCE = FindingSource("Results of a static analyser in SARIF 2.1.0.", iter_items, draft_finding)
