"""What the code of a repository says to a finding: the questions, and the answers of its index.

Names are looked for as they are written: what merely means something similar is no evidence. Only
the finding's title is a question, in which meaning counts.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cleats.toolsets.code.search.output import payload
from cleats.toolsets.code.search.query_tree import OPERATORS
from cleats.toolsets.code.search.request import read
from cleats.toolsets.code.triage import imports
from cleats.toolsets.code.triage.records import Location, Record
from cleats.toolsets.code.triage.values import below

if TYPE_CHECKING:
    from cleats.toolsets.code.search.details import Reading, Row
    from cleats.toolsets.code.search.engine import Engine

HITS: Final = 5
SNIPPET: Final = 240
"""Characters of a hit's text."""

PLACES: Final = 5
"""Places of a finding that are looked up."""

MODES: Final = {"code": "code", "prose": "prose", "extracted-prose": "extractedProse"}
"""The modes that are searched, and their names in an answer."""

_NO_WORD = re.compile(r"[^\w.-]+")
_AROUND = (
    "SELECT c.ordinal FROM chunks c JOIN files f ON f.id = c.file WHERE f.path = ?"
    " AND c.mode = 'code' AND c.start_line <= ? AND c.end_line >= ?"
    " ORDER BY c.end_line - c.start_line, c.ordinal LIMIT 1"
)


@dataclass(frozen=True)
class Probe:
    """One question to the index."""

    why: str
    """What of the finding it is about."""
    text: str
    modes: tuple[str, ...] = tuple(MODES)
    filters: Mapping[str, str] = field(default_factory=dict)
    exact: bool = True

    @property
    def query(self) -> str:
        if self.exact:
            escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        return self.text


def probes(finding: Record) -> list[Probe]:
    """What to ask about a finding; no question twice."""
    seen: dict[tuple[str, str], Probe] = {}
    for probe in _probes(finding):
        if any(map(str.isalnum, probe.text)):
            seen.setdefault((probe.query.lower(), repr(probe.filters)), probe)
    return list(seen.values())


def _probes(finding: Record) -> Iterator[Probe]:
    vuln, package = finding.vuln, finding.package
    yield Probe("vulnerability", vuln.cve)
    yield Probe("vulnerability", vuln.vuln_id)
    yield Probe("package", package.name)
    yield Probe("package", imports.unscoped(package.name))
    for name in imports.names(package.name, package.ecosystem):
        yield Probe("import", name, ("code",), {"import": name})
    manifest = PurePosixPath(package.manifest_path.replace("\\", "/")).name
    if manifest:
        yield Probe("manifest", imports.unscoped(package.name), ("code",), {"file": manifest})
        yield Probe("manifest", manifest)
    yield Probe("endpoint", _endpoint(finding.exposure.public_endpoint))
    yield Probe("title", _question(vuln.title), exact=False)


def _endpoint(text: str) -> str:
    """What code would say of an address: its path, or else its host."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return parts.path.strip("/") or parts.netloc


def _question(title: str) -> str:
    """A title as a question: nothing in it is an operator."""
    words = (word.strip("-.") for word in _NO_WORD.sub(" ", title).split())
    return " ".join(word.lower() if word in OPERATORS else word for word in words if word)


def gather(
    engine: "Engine", root: Path, finding: Record, *, meaning: bool | None
) -> list[dict[str, Any]]:
    """Ask everything; one entry for each question and mode."""
    entries = list(_located(engine, root, finding))
    for probe in probes(finding):
        answer = _asked(engine, probe, meaning=meaning)
        for mode in probe.modes:
            hits = [_hit(each) for each in answer.get(MODES[mode], ())]
            entries.append(_entry(probe, mode, hits))
    return entries


def _entry(probe: Probe, mode: str, hits: list[dict[str, Any]]) -> dict[str, Any]:
    entry = {"query": probe.query, "mode": mode, "about": probe.why, "hits": hits}
    return {**entry, "filters": dict(probe.filters)} if probe.filters else entry


def _asked(engine: "Engine", probe: Probe, *, meaning: bool | None) -> dict[str, Any]:
    wanted = {
        "query": probe.query,
        "mode": "both" if len(probe.modes) > 1 else probe.modes[0],
        "top": HITS,
        "ann": bool(meaning) if probe.exact else meaning,
        "output": "full",
        "explain": True,
        **probe.filters,
    }
    found = engine.search(read(wanted))
    if found.loosened and probe.exact and not meaning:
        return {}  # what has a part of the name is about something else
    return payload(engine, found)


def _hit(hit: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("file", "startLine", "endLine", "kind", "name", "headline", "score", "scoreType")
    return {
        **{key: hit[key] for key in kept},
        "scoreBreakdown": hit["scoreBreakdown"],
        "snippet": hit["text"][:SNIPPET],
    }


def _located(engine: "Engine", root: Path, finding: Record) -> Iterator[dict[str, Any]]:
    """The code at the places that a scanner pointed at."""
    places = [each for each in finding.locations if each.start_line]
    if not places:
        return
    with engine.details.reading() as reading:
        for place in islice(places, PLACES):
            path = below(root, place.path).removeprefix("/").removeprefix("./")
            found = list(
                reading.catalogue.connection.execute(
                    _AROUND, (path, place.start_line, place.start_line)
                )
            )
            rows = [reading.row(path, ordinal) for (ordinal,) in found]
            yield {
                "query": f"{path}:{place.start_line}",
                "mode": "code",
                "about": "location",
                "hits": [_at_place(row, reading, place) for row in rows],
            }


def _at_place(row: "Row", reading: "Reading", place: Location) -> dict[str, Any]:
    lines = reading.lines(row)[place.start_line - 1 : max(place.end_line, place.start_line)]
    return {
        "file": row.path,
        "startLine": row.start_line,
        "endLine": row.end_line,
        "kind": row.kind,
        "name": row.name,
        "headline": row.headline,
        "score": 1.0,
        "scoreType": "location",
        "scoreBreakdown": {"selected": {"type": "location", "score": 1.0}, "parts": []},
        "snippet": "\n".join(lines)[:SNIPPET],
    }
