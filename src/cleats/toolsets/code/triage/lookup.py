"""The finding that a caller means, or what to say when there is none."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.triage.archive import Archive
from cleats.toolsets.code.triage.records import Record

NEAR: Final = 5
"""Ids that are offered instead of a wrong one."""

COMMON: Final = 4
"""Characters that two ids have to share at their beginning to be near."""

_PLAIN = re.compile(r"[^/\\\0]+")


def finding(archive: Archive, argument: str, given: str) -> Record:
    """A finding by its id.

    Raises:
        ToolError: INVALID_REQUEST, it can be no id, or is that of a decision; NOT_FOUND, nothing
            has it.
    """
    wanted = given.strip()
    if not _PLAIN.fullmatch(wanted) or wanted in (".", ".."):
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{argument}: {given!r} is no id of a record",
            hint="An id has 40 digits, 0 to 9 and a to f; it is no path.",
        )
    found = archive.find(wanted.lower())
    if found is None:
        raise _unknown(archive, argument, wanted)
    if found.decision is not None:
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{argument}: {wanted} is a decision",
            hint=f"Use the finding it is about: {found.decision.finding_record_id}.",
        )
    return found


def _unknown(archive: Archive, argument: str, wanted: str) -> ToolError:
    near = list(islice(_near(archive, wanted), NEAR))
    named = [f"{each.record_id} ({each.name})" for each in near]
    hint = f"Did you mean {' or '.join(named)}?" if near else _WHERE
    return ToolError(
        ErrorCode.NOT_FOUND,
        f"{argument}: there is no record {wanted!r}",
        hint=hint,
        details={"near": [each.record_id for each in near]} if near else None,
    )


_WHERE: Final = (
    "triage_ingest answers with the ids of what it took in; `search` with mode=records finds them."
)


def _near(archive: Archive, wanted: str) -> Iterator[Record]:
    """Findings whose id begins alike, or that somebody would call so."""
    lowered = wanted.lower()
    for record in archive.records("finding"):
        names = {
            record.vuln.vuln_id.lower(),
            record.vuln.cve.lower(),
            record.package.name.lower(),
            *(alias.lower() for alias in record.vuln.aliases),
        }
        if lowered in names or record.record_id.startswith(lowered[:COMMON]):
            yield record
