"""Output of `npm audit --json`: version 2 since npm 7, version 1 before.

Version 2 lists a package for each dependency with an advisory; the advisory itself is given where
it applies. Only those entries are findings; the others describe how the dependency is reached.
"""

import re
from collections.abc import Iterator
from typing import Any

from cleats.toolsets.code.triage.cvss import parse_cvss
from cleats.toolsets.code.triage.records import Package, TriageRecord, Vulnerability
from cleats.toolsets.code.triage.sources.drafts import FindingDraft, FindingSource, join_key
from cleats.toolsets.code.triage.values import (
    find_advisory_id,
    find_cve,
    find_cwes,
    first_nonempty,
    get_nested,
    iter_objects,
    normalize_severity,
    to_line,
    to_lines,
    to_text,
)

_LINK_PATTERN = re.compile(r"https?://[^\s()<>\[\]]+")


def iter_items(document: Any) -> Iterator[Any]:
    """Yield every advisory with the package that it is about."""
    advisories, vulnerabilities = get_nested(document, "advisories"), get_nested(document, "vulnerabilities")
    if isinstance(advisories, dict):
        yield from ({"advisory": advisory_data} for advisory_data in advisories.values())
    if isinstance(vulnerabilities, dict):
        for package in vulnerabilities.values():
            for advisory_data in iter_objects(get_nested(package, "via")):
                package_data = {name: get_nested(package, name) for name in ("nodes", "range", "fixAvailable")}
                yield {"advisory": advisory_data, "package": package_data}


def draft_finding(raw: Any) -> FindingDraft:
    """Return the draft of one advisory of one package."""
    advisory_data = get_nested(raw, "advisory")
    score = parse_cvss(get_nested(advisory_data, "cvss", "vectorString"), get_nested(advisory_data, "cvss", "score"))
    ghsa = first_nonempty(
        get_nested(advisory_data, "github_advisory_id"), find_advisory_id(get_nested(advisory_data, "url"))
    )
    number = first_nonempty(get_nested(advisory_data, "source"), get_nested(advisory_data, "id"))
    cve_id = find_cve(get_nested(advisory_data, "cves"))
    package = _build_package(raw, advisory_data)
    vuln = Vulnerability(
        vuln_id=ghsa or cve_id or (f"npm:{number}" if number else ""),
        cve=cve_id,
        aliases=[alias for alias in to_lines(get_nested(advisory_data, "cves")) if alias != ghsa],
        title=to_line(get_nested(advisory_data, "title")),
        description=to_text(get_nested(advisory_data, "overview")),
        severity=normalize_severity(get_nested(advisory_data, "severity"), score.score if score else None),
        cvss=score,
        cwe=find_cwes(get_nested(advisory_data, "cwe")),
        references=to_lines(
            [get_nested(advisory_data, "url"), *_LINK_PATTERN.findall(to_text(get_nested(advisory_data, "references")))]
        ),
    )
    return FindingDraft(join_key(vuln.vuln_id, package.name), TriageRecord(vuln=vuln, package=package))


def _build_package(raw: Any, advisory_data: Any) -> Package:
    occurrence = next(iter_objects(get_nested(advisory_data, "findings")), None)
    fix = get_nested(raw, "package", "fixAvailable")
    package_name = first_nonempty(
        get_nested(advisory_data, "name"),
        get_nested(advisory_data, "dependency"),
        get_nested(advisory_data, "module_name"),
    )
    return Package(
        name=package_name,
        ecosystem="npm",
        installed_version=to_line(get_nested(occurrence, "version")),
        affected_range=first_nonempty(
            get_nested(advisory_data, "range"),
            get_nested(advisory_data, "vulnerable_versions"),
            get_nested(raw, "package", "range"),
        ),
        fixed_version=first_nonempty(
            get_nested(advisory_data, "patched_versions"),
            get_nested(fix, "version") if get_nested(fix, "name") == package_name else "",
        ),
        manifest_path="package.json",
    )


NPM_AUDIT_SOURCE = FindingSource("What `npm audit --json` prints, from npm 6 on.", iter_items, draft_finding)
