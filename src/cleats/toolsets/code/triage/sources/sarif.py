"""Results in SARIF 2.1.0, the common format of static analysers.

A result says little by itself: its rule, its message and its file may all be numbers that point
into the run. `items` looks them up, so that an item stands for itself.
"""

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final
from urllib.parse import unquote

from cleats.toolsets.code.triage.cvss import cvss
from cleats.toolsets.code.triage.drafts import Draft, Source
from cleats.toolsets.code.triage.records import Location, Record, Vulnerability
from cleats.toolsets.code.triage.values import (
    at,
    count,
    cve,
    cwes,
    first,
    line,
    lines,
    objects,
    prose,
    severity,
    texts_by_key,
)

NO_FINDINGS: Final = frozenset({"pass", "notApplicable"})
"""Kinds of results that say that all is well."""

PLACES: Final = 20
_GAP: Final = re.compile(r"\{\w*\}")
SNIPPET: Final = 1000


def items(document: Any) -> Iterator[Any]:
    """Every result that finds something, with its rule and its tool."""
    for run in objects(at(document, "runs")):
        seen: Counter[str] = Counter()
        for result in objects(at(run, "results")):
            if line(at(result, "kind")) in NO_FINDINGS:
                continue
            item = {
                "result": result,
                "rule": _rule(run, result),
                "tool": first(at(run, "tool", "driver", "name"), "analyser"),
                "files": _files(run, result),
            }
            mark = _mark(item)
            seen[mark] += 1
            # The same line can stand twice in a file; its turn tells the one from the other.
            yield {**item, "mark": mark, "turn": seen[mark]}


def draft(item: Any) -> Draft:
    """One result."""
    result, rule, tool = at(item, "result"), at(item, "rule"), line(at(item, "tool"))
    named = _named(item)
    said = _message(result, rule)
    score = cvss("", at(rule, "properties", "security-severity"))
    short = line(at(rule, "shortDescription", "text"))
    title = first(
        # One with gaps is a form that the message has filled in.
        "" if _GAP.search(short) and said else short,
        line(said.partition("\n")[0], 160),
        at(rule, "name"),
    )
    vuln = Vulnerability(
        vuln_id=named,
        cve=cve(named),
        title=title,
        description="\n\n".join(dict.fromkeys(filter(None, (said, _explained(rule, title))))),
        severity=severity("", score.score) if score else severity(_level(result, rule)),
        cvss=score,
        cwe=cwes(
            lines(at(rule, "properties", "tags")),
            lines(at(rule, "properties", "cwe")),
            lines(at(rule, "relationships"), "target", "id"),
            lines(at(result, "taxa"), "id"),
        ),
        references=lines([at(rule, "helpUri"), at(result, "hostedViewerUri")]),
    )
    record = Record(
        status=_status(result), vuln=vuln, locations=_locations(item), labels={"tool": tool}
    )
    turn = count(at(item, "turn"))
    mark = line(at(item, "mark"))
    return Draft(f"{mark}#{turn}" if turn > 1 else mark, record)


def _rule(run: Any, result: Any) -> Any:
    """The rule of a result, looked up by its place or by its name."""
    tool = at(run, "tool")
    extensions = at(tool, "extensions")
    part = _item(extensions, at(result, "rule", "toolComponent", "index")) or at(tool, "driver")
    rules = at(part, "rules")
    index = at(result, "ruleIndex")
    placed = _item(rules, at(result, "rule", "index") if index is None else index)
    if placed:
        return placed
    named = first(at(result, "ruleId"), at(result, "rule", "id"))
    return next((rule for rule in objects(rules) if named and line(at(rule, "id")) == named), {})


def _item(values: Any, index: Any) -> Any:
    if isinstance(values, list) and type(index) is int and 0 <= index < len(values):
        return values[index]
    return None


def _files(run: Any, result: Any) -> list[str]:
    """The files of the result's places, in their order."""
    artifacts = at(run, "artifacts")
    found = []
    for place in list(objects(at(result, "locations")))[:PLACES]:
        named = at(place, "physicalLocation", "artifactLocation")
        listed = _item(artifacts, at(named, "index"))
        found.append(first(at(named, "uri"), at(listed, "location", "uri")))
    return found


def _named(item: Any) -> str:
    rule = at(item, "rule")
    return first(at(item, "result", "ruleId"), at(item, "result", "rule", "id"), at(rule, "id"))


def _mark(item: Any) -> str:
    """What is the same for one result in every run, also when lines move."""
    result = at(item, "result")
    file = next(iter(at(item, "files")), "")
    prints = texts_by_key(at(result, "fingerprints")) or texts_by_key(
        at(result, "partialFingerprints")
    )
    if not prints:
        region = at(next(objects(at(result, "locations")), None), "physicalLocation", "region")
        text = prose(at(region, "snippet", "text")) or line(at(region, "startLine"))
        prints = {"text": f"{_message(result, at(item, 'rule'))}\n{text}"}
    said = "\n".join(f"{name}={value}" for name, value in sorted(prints.items()))
    digest = sha256(said.encode(errors="replace")).hexdigest()[:24]
    return f"{line(at(item, 'tool'))}:{_named(item)}:{file}:{digest}"


def _message(result: Any, rule: Any) -> str:
    message = at(result, "message")
    text = prose(at(message, "text")) or prose(at(message, "markdown"))
    if not text:
        text = prose(at(rule, "messageStrings", line(at(message, "id")), "text"))
    for place, value in enumerate(lines(at(message, "arguments"))):
        text = text.replace(f"{{{place}}}", value)
    return prose(text)


def _explained(rule: Any, title: str) -> str:
    full = prose(at(rule, "fullDescription", "text"))
    return "" if line(full) == title else full


def _level(result: Any, rule: Any) -> str:
    return first(at(result, "level"), at(rule, "defaultConfiguration", "level"), "warning")


def _status(result: Any) -> str:
    suppressed = [line(at(each, "status")) for each in objects(at(result, "suppressions"))]
    if any(status in ("", "accepted") for status in suppressed):
        return "suppressed"
    return "absent" if line(at(result, "baselineState")) == "absent" else "open"


def _locations(item: Any) -> list[Location]:
    places = objects(at(item, "result", "locations"))
    found = []
    for file, place in zip(at(item, "files"), places, strict=False):
        region = at(place, "physicalLocation", "region")
        begin = count(at(region, "startLine"))
        end = count(at(region, "endLine")) or begin
        snippet = prose(at(region, "snippet", "text"))[:SNIPPET]
        found.append(Location(_path(file), begin, end, snippet))
    return [each for each in found if each.path]


def _path(uri: str) -> str:
    """A path from the address of a file."""
    plain = unquote(uri.removeprefix("file://"), errors="replace")
    return line(plain.replace("\\", "/").removeprefix("./"))


SOURCE = Source("Results of a static analyser in SARIF 2.1.0.", items, draft)
