"""What `pip-audit --format json` prints; the first versions printed the bare list."""

from collections.abc import Iterator
from typing import Any

from cleats.toolsets.code.triage.drafts import Draft, Source, key
from cleats.toolsets.code.triage.records import Package, Record, Vulnerability
from cleats.toolsets.code.triage.values import at, cve, first, line, lines, objects, prose


def items(document: Any) -> Iterator[Any]:
    """A dependency and a vulnerability of it."""
    for dependency in objects(
        at(document, "dependencies") if isinstance(document, dict) else document
    ):
        for vulnerability in objects(at(dependency, "vulns") or []):
            yield {
                "dependency": {
                    "name": at(dependency, "name"),
                    "version": at(dependency, "version"),
                },
                "vulnerability": vulnerability,
            }


def draft(raw: Any) -> Draft:
    """One vulnerability of one dependency."""
    dependency, vuln = at(raw, "dependency"), at(raw, "vulnerability")
    named, aliases = line(at(vuln, "id")), lines(at(vuln, "aliases"))
    known = cve(named, aliases)
    package = Package(
        name=line(at(dependency, "name")),
        ecosystem="pypi",
        installed_version=line(at(dependency, "version")),
        fixed_version=", ".join(lines(at(vuln, "fix_versions"))),
    )
    description = prose(at(vuln, "description"))
    record = Record(
        vuln=Vulnerability(
            vuln_id=first(named, known),
            cve=known,
            aliases=aliases,
            title=line(description.partition("\n")[0], 120),
            description=description,
        ),
        package=package,
    )
    return Draft(key(record.vuln.vuln_id, package.name), record)


SOURCE = Source("What `pip-audit --format json` prints.", items, draft)
