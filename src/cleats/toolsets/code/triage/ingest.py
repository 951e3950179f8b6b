"""From a document to records: each finding understood, named, completed and kept.

One finding that cannot be understood is reported and costs nothing else. To ingest the same again
changes nothing.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.triage.documents import Documents
from cleats.toolsets.code.triage.keeping import Change, Writer
from cleats.toolsets.code.triage.recognition import SIGNS, advice, fits
from cleats.toolsets.code.triage.records import Record, encode, record_id
from cleats.toolsets.code.triage.routing import route
from cleats.toolsets.code.triage.sources.table import SOURCES
from cleats.toolsets.code.triage.values import below

RAW: Final = 32 << 10
"""Bytes of what a source wrote that are kept with a record."""

REPORTED: Final = 100
"""Errors that are told one by one; the rest is counted."""

LISTED: Final = 500
"""Records that are named in an answer; all are counted."""

EVERY: Final = 50
"""Findings that are kept together, and between two reports of progress."""

Advance = Callable[[int, int], bool]
"""Told how far it is and how much there is; False ends the work."""


@dataclass
class Ingested:
    """What came of a document."""

    total: int = 0
    errors: int = 0
    duplicates: int = 0
    """Findings that the document has more than once."""
    recognised: bool = False
    """Whether the document has the signs of its source, so that it may well have no findings."""
    changes: Counter[Change] = field(default_factory=Counter)
    records: dict[str, Change] = field(default_factory=dict)
    error_details: list[dict[str, Any]] = field(default_factory=list)

    def fail(self, index: int, message: str) -> None:
        self.errors += 1
        if len(self.error_details) < REPORTED:
            self.error_details.append({"index": index, "message": message})


class NotAFinding(Exception):  # noqa: N818 - an answer about one thing in a document
    """Raised for a thing that says nothing a finding needs."""


def ingest(
    writer: Writer,
    source: str,
    documents: Documents,
    meta: Mapping[str, Any],
    advance: Advance = lambda _done, _total: True,
    *,
    root: Path = Path(),
) -> Ingested:
    """Keep every finding of some documents, with places as they are called below `root`.

    Raises:
        ToolError: INVALID_REQUEST, nothing in them is of that source, and nothing is kept.
        OSError, ToolError: a record cannot be kept; those before it are.
    """
    done = Ingested(recognised=source in SIGNS)
    for line, why in documents.broken:
        done.fail(line, f"line {line + 1}: {why}")
    things: list[tuple[int, Any]] = []
    strange = 0
    for line, document in documents.whole:
        if not fits(source, document):
            strange += 1
            done.fail(line, f"line {line + 1}: it is not what {source} writes")
            continue
        found = enumerate(SOURCES[source].items(document))
        things += ((line if documents.by_line else number, thing) for number, thing in found)
    if strange and strange == len(documents.whole):
        raise _stranger(source, documents.whole[0][1])
    intake = _Intake(writer, source, meta, done, root)
    for count, (index, thing) in enumerate(things):
        if count % EVERY == 0:
            intake.keep()
            if not advance(count, len(things)):
                break
        intake.take(index, thing)
    intake.keep()
    return done


def _stranger(source: str, document: Any) -> ToolError:
    why = f"is not what {source} writes"
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"inputPath: the document {why}",
        hint=advice(source, document),
        details=[{"instancePath": "/inputPath", "keyword": "source", "message": why}],
    )


@dataclass(frozen=True)
class _Intake:
    writer: Writer
    source: str
    meta: Mapping[str, Any]
    done: Ingested
    root: Path
    waiting: dict[str, Record] = field(default_factory=dict)

    def take(self, index: int, thing: Any) -> None:
        done = self.done
        done.total += 1
        try:
            record = understood(self.source, thing)
        except NotAFinding as error:
            done.fail(index, str(error))
            return
        except RecursionError:
            done.fail(index, "it is nested too deep")
            return
        if record.record_id in done.records or record.record_id in self.waiting:
            done.duplicates += 1  # the first counts, or the two would take turns for ever
            return
        route(record, self.meta)
        self._place(record)
        self.waiting[record.record_id] = record

    def _place(self, record: Record) -> None:
        """Call files as every machine does, wherever it has the repository."""
        for location in record.locations:
            location.path = below(self.root, location.path)
        record.package.manifest_path = below(self.root, record.package.manifest_path)

    def keep(self) -> None:
        changes = self.writer.save(list(self.waiting.values()))
        self.done.changes.update(changes)
        self.done.records.update(zip(self.waiting, changes, strict=True))
        self.waiting.clear()


def understood(source: str, thing: Any) -> Record:
    """The record of one thing in a document, without times.

    Raises:
        NotAFinding: there is nothing in it that a finding needs.
        RecursionError: it is nested too deep.
    """
    if not isinstance(thing, dict):
        raise NotAFinding("it is no object")
    key, record = SOURCES[source].draft(thing)
    if not (record.vuln.vuln_id or record.vuln.title or record.package.name):
        raise NotAFinding(f"it has no id, no title and no package, as {source} would write them")
    record.source = source
    raw = encode(thing)
    if len(raw) <= RAW:
        record.raw = msgspec.Raw(raw)
    record.parse_warnings = list(_warnings(record, key, len(raw)))
    record.record_id = record_id(source, key or hashlib.sha256(raw).hexdigest())
    # What is kept is compared with what is read back, so it must be what will be read back.
    return msgspec.json.decode(encode(record), type=Record)


def _warnings(record: Record, key: str, size: int) -> Iterator[str]:
    if not key:
        yield "no id of its own: any change in it makes it another finding"
    if not record.vuln.severity:
        yield "no severity"
    if size > RAW:
        yield f"the original of {size:,} bytes was not kept"
