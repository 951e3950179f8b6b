"""Decisions: how one is made about a finding, when it ends, and which count for another."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final
from uuid import uuid4

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.triage.archive import Archive
from cleats.toolsets.code.triage.records import Decision, Record, record_id
from cleats.toolsets.code.triage.routing import route
from cleats.toolsets.code.triage.values import lines, prose

HISTORY: Final = 5
"""Decisions that a reader is shown."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?")


def decide(finding: Record, given: Mapping[str, Any]) -> Record:
    """The record of a decision about a finding. Two are never the same.

    Raises:
        ToolError: INVALID_REQUEST, the expiry is no date.
    """
    decision = Decision(
        finding_record_id=finding.record_id,
        status=given["status"],
        justification=prose(given.get("justification")),
        justification_codes=lines(given.get("codes", [])),
        reviewer=str(given.get("reviewer", "")).strip(),
        expires_at=expiry(given["expires"]) if "expires" in given else "",
        evidence_refs=lines(given.get("evidence", [])),
    )
    record = Record(
        record_type="decision",
        source=finding.source,
        service=finding.service,
        env=finding.env,
        team=finding.team,
        owner=finding.owner,
        repo=finding.repo,
        labels=finding.labels,
        vuln=finding.vuln,
        package=finding.package,
        asset=finding.asset,
        exposure=msgspec.structs.replace(finding.exposure),
        decision=decision,
    )
    route(record, given.get("meta", {}))
    record.record_id = record_id("decision", f"{finding.record_id}:{uuid4()}")
    return record


def expiry(text: str) -> str:
    """A date as it is, or a moment in UTC.

    Raises:
        ToolError: INVALID_REQUEST, it is neither.
    """
    given = text.strip()
    try:
        if _DAY.fullmatch(given):
            return date.fromisoformat(given).isoformat()
        if _MOMENT.fullmatch(given):
            moment = datetime.fromisoformat(given)
            known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return known.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        pass
    raise ToolError(
        ErrorCode.INVALID_REQUEST,
        f"expires: {text!r} is no date",
        hint="Write it as 2027-01-31, or with a time as 2027-01-31T12:00:00Z.",
        details=[{"instancePath": "/expires", "keyword": "date", "message": "is no date"}],
    )


def expired(decision: Decision, now: datetime) -> bool:
    """Whether it holds no longer; it holds through the day it names."""
    until = decision.expires_at
    if not until:
        return False
    if _DAY.fullmatch(until):
        return now.astimezone(UTC).date().isoformat() > until
    return now >= datetime.fromisoformat(until)


def history(archive: Archive, finding: Record, now: datetime) -> list[dict[str, Any]]:
    """What was decided about this finding, and about others like it: nearest, then newest."""
    related = [
        (-nearness, decided.created_at, decided.record_id, relation, decided)
        for decided in archive.records("decision")
        for nearness, relation in _relations(finding, decided)
    ]
    newest_first = sorted(related, key=lambda each: each[1:3], reverse=True)
    nearest_first = sorted(newest_first, key=lambda each: each[0], reverse=True)
    return [_shown(decided, relation, now) for *_, relation, decided in nearest_first[:HISTORY]]


def _relations(finding: Record, decided: Record) -> Iterator[tuple[int, str]]:
    """How near a decision is to a finding: the nearest way only."""
    if decided.decision is None:
        return
    if decided.decision.finding_record_id == finding.record_id:
        yield 0, "finding"
    elif _names(finding) & _names(decided):
        yield 1, "vulnerability"
    elif _same(finding.package.name, decided.package.name):
        yield 2, "package"
    elif _same(finding.package.manifest_path, decided.package.manifest_path):
        yield 3, "manifest"


def _names(record: Record) -> set[str]:
    vuln = record.vuln
    return {name.lower() for name in (vuln.vuln_id, vuln.cve, *vuln.aliases) if name}


def _same(one: str, other: str) -> bool:
    return bool(one) and one.lower() == other.lower()


def _shown(record: Record, relation: str, now: datetime) -> dict[str, Any]:
    decision = record.decision
    made = msgspec.to_builtins(decision)
    return {
        "recordId": record.record_id,
        "relation": relation,
        "decidedAt": record.created_at,
        "expired": decision is not None and expired(decision, now),
        "vulnId": record.vuln.vuln_id,
        "packageName": record.package.name,
        "service": record.service,
        "env": record.env,
        **made,
    }
