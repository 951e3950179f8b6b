"""Output of `pip-audit --format json`; the first versions printed a bare list."""

from collections.abc import Iterator
from typing import Any

from cleats.toolsets.code.triage.records import Package, TriageRecord, Vulnerability
from cleats.toolsets.code.triage.sources.drafts import FindingDraft, FindingSource, join_key
from cleats.toolsets.code.triage.values import (
    find_cve,
    first_nonempty,
    get_nested,
    iter_objects,
    to_line,
    to_lines,
    to_text,
)


def iter_items(document: Any) -> Iterator[Any]:
    """Yield each dependency with each of its vulnerabilities."""
    for dependency in iter_objects(get_nested(document, "dependencies") if isinstance(document, dict) else document):
        for vulnerability in iter_objects(get_nested(dependency, "vulns") or []):
            yield {
                "dependency": {
                    "name": get_nested(dependency, "name"),
                    "version": get_nested(dependency, "version"),
                },
                "vulnerability": vulnerability,
            }


def draft_finding(raw: Any) -> FindingDraft:
    """Return the draft of one vulnerability of one dependency."""
    dependency, vuln = get_nested(raw, "dependency"), get_nested(raw, "vulnerability")
    vuln_id, aliases = to_line(get_nested(vuln, "id")), to_lines(get_nested(vuln, "aliases"))
    cve_id = find_cve(vuln_id, aliases)
    package = Package(
        name=to_line(get_nested(dependency, "name")),
        ecosystem="pypi",
        installed_version=to_line(get_nested(dependency, "version")),
        fixed_version=", ".join(to_lines(get_nested(vuln, "fix_versions"))),
    )
    description = to_text(get_nested(vuln, "description"))
    record = TriageRecord(
        vuln=Vulnerability(
            vuln_id=first_nonempty(vuln_id, cve_id),
            cve=cve_id,
            aliases=aliases,
            title=to_line(description.partition("\n")[0], 120),
            description=description,
        ),
        package=package,
    )
    return FindingDraft(join_key(record.vuln.vuln_id, package.name), record)


PIP_AUDIT_SOURCE = FindingSource("What `pip-audit --format json` prints.", iter_items, draft_finding)
