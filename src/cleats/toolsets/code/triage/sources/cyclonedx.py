"""The vulnerabilities of a CycloneDX document: an SBOM that has them, or a VEX."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from cleats.toolsets.code.triage.cvss import cvss
from cleats.toolsets.code.triage.drafts import Draft, Source, key
from cleats.toolsets.code.triage.records import Cvss, Package, Record, Vulnerability
from cleats.toolsets.code.triage.values import (
    at,
    cve,
    cwes,
    ecosystem,
    line,
    lines,
    objects,
    prose,
    severity,
)

DEEPEST = 16
"""Components within components that are looked into."""


def items(document: Any) -> Iterator[Any]:
    """A vulnerability with a component that it affects."""
    if not isinstance(document, dict):
        return
    components = {ref: each for ref, each in _components(document) if ref}
    for vulnerability in objects(at(document, "vulnerabilities") or []):
        about = {name: value for name, value in vulnerability.items() if name != "affects"}
        for affected in list(objects(at(vulnerability, "affects"))) or [{}]:
            ref = line(at(affected, "ref"))
            found = components.get(ref) or {}
            component = {name: at(found, name) for name in ("name", "group", "version", "purl")}
            yield {"vulnerability": about, "affects": affected, "component": component}


def _components(document: Any) -> Iterator[tuple[str, Any]]:
    level = [at(document, "metadata", "component"), *objects(at(document, "components"))]
    for _ in range(DEEPEST):
        found = [each for each in level if isinstance(each, dict)]
        yield from ((line(at(each, "bom-ref")) or line(at(each, "purl")), each) for each in found)
        level = [below for each in found for below in objects(at(each, "components"))]


def draft(raw: Any) -> Draft:
    """One vulnerability of one component."""
    said = at(raw, "vulnerability")
    named = line(at(said, "id"))
    known = lines(at(said, "references"), "id")
    score, word = _rating(said)
    vuln = Vulnerability(
        vuln_id=named,
        cve=cve(named, known),
        aliases=known,
        title=line(prose(at(said, "description")).partition("\n")[0], 160),
        description=prose(at(said, "detail")) or prose(at(said, "description")),
        severity=severity(word, score.score if score else None),
        cvss=score,
        cwe=cwes(at(said, "cwes")),
        references=lines([at(said, "source", "url"), *lines(at(said, "advisories"), "url")]),
    )
    package = _package(raw)
    record = Record(
        status=line(at(said, "analysis", "state")).lower(),
        vuln=vuln,
        package=package,
        labels=_analysis(said),
    )
    return Draft(key(named, package.purl or package.name, package.installed_version), record)


def _analysis(said: Any) -> dict[str, str]:
    found = line(at(said, "analysis", "justification"))
    return {"justification": found} if found else {}


def _rating(said: Any) -> tuple[Cvss | None, str]:
    """The highest score, and the word of the same rating."""
    rated = [
        (cvss(at(each, "vector"), at(each, "score"), _version(at(each, "method"))), each)
        for each in objects(at(said, "ratings"))
    ]
    if not rated:
        return None, ""
    score, rating = max(rated, key=lambda pair: (pair[0].score or 0.0) if pair[0] else 0.0)
    words = [line(at(each, "severity")) for _, each in rated]
    return score, line(at(rating, "severity")) or next(filter(None, words), "")


def _version(method: Any) -> str:
    digits = line(method).removeprefix("CVSSv")
    return {"2": "2.0", "3": "3.0", "31": "3.1", "4": "4.0"}.get(digits, "")


def _package(raw: Any) -> Package:
    component = at(raw, "component")
    ref = line(at(raw, "affects", "ref"))
    purl = line(at(component, "purl")) or (ref if ref.startswith("pkg:") else "")
    registry, name, version = _read(purl)
    group, plain = line(at(component, "group")), line(at(component, "name"))
    joint = ":" if registry == "maven" else "/"
    versions = list(objects(at(raw, "affects", "versions")))
    return Package(
        name=name or (f"{group}{joint}{plain}" if group and plain else plain) or ref,
        ecosystem=ecosystem(registry),
        installed_version=line(at(component, "version")) or version,
        affected_range=", ".join(lines(versions, "range")),
        purl=purl,
    )


def _read(purl: str) -> tuple[str, str, str]:
    """The type, the name and the version in a package URL."""
    if not purl.startswith("pkg:"):
        return "", "", ""
    path = purl.removeprefix("pkg:").partition("?")[0].partition("#")[0]
    registry, _, rest = path.partition("/")
    name, _, version = rest.partition("@")
    joined = unquote(name)
    if registry == "maven":
        joined = joined.replace("/", ":")
    return registry.lower(), joined, unquote(version)


SOURCE = Source("A CycloneDX document with vulnerabilities: an SBOM or a VEX.", items, draft)
