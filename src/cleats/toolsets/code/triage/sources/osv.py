"""Vulnerabilities in the OSV schema: bare, from the API of osv.dev, or from osv-scanner."""

from collections.abc import Iterator
from typing import Any

from cleats.toolsets.code.triage.cvss import cvss
from cleats.toolsets.code.triage.drafts import Draft, Source, key
from cleats.toolsets.code.triage.records import Cvss, Package, Record, Vulnerability
from cleats.toolsets.code.triage.values import (
    at,
    cve,
    cwes,
    ecosystem,
    first,
    line,
    lines,
    objects,
    prose,
    severity,
)


def items(document: Any) -> Iterator[Any]:
    """A vulnerability with the package that has it."""
    if isinstance(at(document, "results"), list):
        yield from _scanned(document["results"])
        return
    if document == {}:
        return  # what the database answers about a package without vulnerabilities
    whole = document if isinstance(document, list) else at(document, "vulns") or document
    for vulnerability in objects(whole):
        affected = [each for each in objects(at(vulnerability, "affected")) if at(each, "package")]
        for each in affected or [{}]:
            yield {"vulnerability": vulnerability, "package": at(each, "package")}


def _scanned(results: list[Any]) -> Iterator[Any]:
    for result in objects(results):
        source = at(result, "source", "path")
        # An answer of the batch API has the vulnerabilities here, and says nothing of packages.
        for vulnerability in objects(at(result, "vulns") or []):
            yield from items(vulnerability)
        for found in objects(at(result, "packages") or []):
            for vulnerability in objects(at(found, "vulnerabilities") or []):
                yield {
                    "vulnerability": vulnerability,
                    "package": at(found, "package"),
                    "source": source,
                }


def draft(raw: Any) -> Draft:
    """One vulnerability of one package."""
    said = at(raw, "vulnerability")
    named, aliases = line(at(said, "id")), lines(at(said, "aliases"))
    score = _score(said)
    word = first(
        at(said, "database_specific", "severity"), at(said, "ecosystem_specific", "severity")
    )
    vuln = Vulnerability(
        vuln_id=named,
        cve=cve(named, aliases),
        aliases=aliases,
        title=line(at(said, "summary")),
        description=prose(at(said, "details")),
        severity=severity(word, score.score if score else None),
        cvss=score,
        cwe=cwes(at(said, "database_specific", "cwe_ids")),
        references=lines(at(said, "references"), "url"),
    )
    package = _package(raw, said)
    record = Record(status="withdrawn" if at(said, "withdrawn") else "", vuln=vuln, package=package)
    return Draft(key(named, package.name, package.manifest_path), record)


def _score(said: Any) -> Cvss | None:
    """The best known of several: version 3 has a number that we can compute."""
    found = [cvss(at(each, "score")) for each in objects(at(said, "severity"))]
    known = [score for score in found if score is not None]
    return max(known, key=lambda score: (score.score is not None, score.version), default=None)


def _package(raw: Any, said: Any) -> Package:
    package = at(raw, "package")
    name, registry = line(at(package, "name")), line(at(package, "ecosystem"))
    affected = _affected(said, name, registry)
    events = [
        event
        for span in objects(at(affected, "ranges"))
        for event in objects(at(span, "events"))
        if line(at(span, "type")) != "GIT"
    ]
    return Package(
        name=name,
        ecosystem=ecosystem(registry),
        installed_version=line(at(package, "version")),
        affected_range=_range(events),
        fixed_version=", ".join(lines(events, "fixed")),
        manifest_path=line(at(raw, "source")),
        purl=first(at(package, "purl"), at(affected, "package", "purl")),
    )


def _affected(said: Any, name: str, registry: str) -> Any:
    for each in objects(at(said, "affected")):
        same = line(at(each, "package", "name")).lower() == name.lower()
        if same and line(at(each, "package", "ecosystem")).lower() == registry.lower():
            return each
    return None


def _range(events: list[dict[str, Any]]) -> str:
    signs = {"introduced": ">=", "fixed": "<", "last_affected": "<="}
    said = [
        f"{sign} {version}"
        for event in events
        for name, sign in signs.items()
        if (version := line(at(event, name)))
    ]
    return line(", ".join(said))


SOURCE = Source("Vulnerabilities in the OSV schema, or what osv-scanner prints.", items, draft)
