"""What `npm audit --json` prints: version 2 since npm 7, version 1 before.

In version 2 a package is listed for each thing it depends on that has an advisory; the advisory
itself is written where it applies. Only those are findings, the rest is how they get there.
"""

import re
from collections.abc import Iterator
from typing import Any

from cleats.toolsets.code.triage.cvss import cvss
from cleats.toolsets.code.triage.drafts import Draft, Source, key
from cleats.toolsets.code.triage.records import Package, Record, Vulnerability
from cleats.toolsets.code.triage.values import (
    advisory,
    at,
    cve,
    cwes,
    first,
    line,
    lines,
    objects,
    prose,
    severity,
)

_LINK = re.compile(r"https?://[^\s()<>\[\]]+")


def items(document: Any) -> Iterator[Any]:
    """Every advisory, with the package that it is about."""
    old, new = at(document, "advisories"), at(document, "vulnerabilities")
    if isinstance(old, dict):
        yield from ({"advisory": each} for each in old.values())
    if isinstance(new, dict):
        for package in new.values():
            for each in objects(at(package, "via")):
                about = {name: at(package, name) for name in ("nodes", "range", "fixAvailable")}
                yield {"advisory": each, "package": about}


def draft(raw: Any) -> Draft:
    """One advisory of one package."""
    said = at(raw, "advisory")
    score = cvss(at(said, "cvss", "vectorString"), at(said, "cvss", "score"))
    ghsa = first(at(said, "github_advisory_id"), advisory(at(said, "url")))
    number = first(at(said, "source"), at(said, "id"))
    known = cve(at(said, "cves"))
    package = _package(raw, said)
    vuln = Vulnerability(
        vuln_id=ghsa or known or (f"npm:{number}" if number else ""),
        cve=known,
        aliases=[each for each in lines(at(said, "cves")) if each != ghsa],
        title=line(at(said, "title")),
        description=prose(at(said, "overview")),
        severity=severity(at(said, "severity"), score.score if score else None),
        cvss=score,
        cwe=cwes(at(said, "cwe")),
        references=lines([at(said, "url"), *_LINK.findall(prose(at(said, "references")))]),
    )
    return Draft(key(vuln.vuln_id, package.name), Record(vuln=vuln, package=package))


def _package(raw: Any, said: Any) -> Package:
    found = next(objects(at(said, "findings")), None)
    fix = at(raw, "package", "fixAvailable")
    by_name = first(at(said, "name"), at(said, "dependency"), at(said, "module_name"))
    return Package(
        name=by_name,
        ecosystem="npm",
        installed_version=line(at(found, "version")),
        affected_range=first(
            at(said, "range"), at(said, "vulnerable_versions"), at(raw, "package", "range")
        ),
        fixed_version=first(
            at(said, "patched_versions"),
            at(fix, "version") if at(fix, "name") == by_name else "",
        ),
        manifest_path="package.json",
    )


SOURCE = Source("What `npm audit --json` prints, from npm 6 on.", items, draft)
