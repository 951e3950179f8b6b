"""Evidence for a finding: queries to the index of the repository, and their hits.

Names are searched exactly as written, because similar meaning is no evidence. Only the title of the
finding is searched by meaning.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.query.tree import QUERY_OPERATORS
from cleats.toolsets.code.records.model import Location, TriageRecord
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.retrieval import search_generation
from cleats.toolsets.code.triage.values import strip_root

if TYPE_CHECKING:
    from cleats.toolsets.code.search.engine import SearchEngine
    from cleats.toolsets.code.search.hit_details import CatalogueReader, HitRow

_PYPI_MODULE_NAMES: Final[Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("pypi_modules.toml").read_text("utf-8")
)
"""PyPI packages whose modules have other names."""


def list_import_names(package: str, ecosystem: str) -> list[str]:
    """Return the modules that code would import from a package."""
    if not package:
        return []
    match ecosystem:
        case "pypi":
            normalized_name = package.lower().replace("_", "-").replace(".", "-")
            return _PYPI_MODULE_NAMES.get(normalized_name, package.replace("-", "_").lower()).split()
        case "cargo":
            return [package.replace("-", "_")]
        case "maven":
            group = package.partition(":")[0]
            return [group] if "." in group else []
        case "rubygems":
            return list(dict.fromkeys((package, package.replace("-", "/"))))
        case _:
            return [package]


def strip_scope(package: str) -> str:
    """Return the last part of `@scope/name`, `group:artifact` or `host/owner/name`."""
    return package.replace(":", "/").rsplit("/", 1)[-1]


MAX_HITS: Final = 5
MAX_SNIPPET_CHARS: Final = 240
"""Characters of the text of a hit."""

MAX_LOCATIONS: Final = 5
"""Locations of a finding that are looked up."""

ANSWER_KEYS_BY_MODE: Final = {"code": "code", "prose": "prose", "extracted-prose": "extractedProse"}
"""Keys of an answer by search mode."""

_NON_WORD_PATTERN = re.compile(r"[^\w.-]+")
_SELECT_ENCLOSING_CHUNK_SQL = (
    "SELECT c.ordinal FROM chunks c JOIN files f ON f.id = c.file WHERE f.path = ? AND c.mode = 'code' AND "
    "c.start_line <= ? AND c.end_line >= ? ORDER BY c.end_line - c.start_line, c.ordinal LIMIT 1"
)


@dataclass(frozen=True)
class Probe:
    """One query to the index about a finding."""

    about: str
    """The aspect of the finding that the query is about."""
    text: str
    modes: tuple[str, ...] = tuple(ANSWER_KEYS_BY_MODE)
    filters: Mapping[str, str] = field(default_factory=dict)
    exact: bool = True

    @property
    def query(self) -> str:
        if self.exact:
            escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        return self.text


def build_probes(finding: TriageRecord) -> list[Probe]:
    """Return the distinct queries to run for a finding."""
    unique_probes: dict[tuple[str, str], Probe] = {}
    for probe in _iter_probes(finding):
        if any(map(str.isalnum, probe.text)):
            unique_probes.setdefault((probe.query.lower(), repr(probe.filters)), probe)
    return list(unique_probes.values())


def _iter_probes(finding: TriageRecord) -> Iterator[Probe]:
    vuln, package = finding.vuln, finding.package
    yield Probe("vulnerability", vuln.cve)
    yield Probe("vulnerability", vuln.vuln_id)
    yield Probe("package", package.name)
    yield Probe("package", strip_scope(package.name))
    for module_name in list_import_names(package.name, package.ecosystem):
        yield Probe("import", module_name, ("code",), {"import": module_name})
    manifest = PurePosixPath(package.manifest_path.replace("\\", "/")).name
    if manifest:
        yield Probe("manifest", strip_scope(package.name), ("code",), {"file": manifest})
        yield Probe("manifest", manifest)
    yield Probe("endpoint", _extract_endpoint_term(finding.exposure.public_endpoint))
    yield Probe("title", _clean_title(vuln.title), exact=False)


def _extract_endpoint_term(text: str) -> str:
    """Return the path of an address, or else its host, as code would mention it."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return parts.path.strip("/") or parts.netloc


def _clean_title(title: str) -> str:
    words = (word.strip("-.") for word in _NON_WORD_PATTERN.sub(" ", title).split())
    return " ".join(word.lower() if word in QUERY_OPERATORS else word for word in words if word)


def gather_evidence(
    engine: "SearchEngine", root: Path, finding: TriageRecord, *, semantic: bool | None
) -> list[dict[str, Any]]:
    """Run all queries; return one entry for each query and mode."""
    entries = list(_find_located_code(engine, root, finding))
    for probe in build_probes(finding):
        answer = _run_probe(engine, probe, semantic=semantic)
        for mode in probe.modes:
            hits = [_summarize_hit(hit) for hit in answer.get(ANSWER_KEYS_BY_MODE[mode], ())]
            entry = {"query": probe.query, "mode": mode, "about": probe.about, "hits": hits}
            entries.append({**entry, "filters": dict(probe.filters)} if probe.filters else entry)
    return entries


def _run_probe(engine: "SearchEngine", probe: Probe, *, semantic: bool | None) -> dict[str, Any]:
    request_args = {
        "query": probe.query,
        "mode": "both" if len(probe.modes) > 1 else probe.modes[0],
        "top": MAX_HITS,
        "ann": bool(semantic) if probe.exact else semantic,
        "output": "full",
        "explain": True,
        **probe.filters,
    }
    results = search_generation(engine, parse_request(request_args))
    if results.is_loosened and probe.exact and not semantic:
        return {}  # a hit with only a part of the name is about something else
    return render_answer(engine, results)


def _summarize_hit(hit: Mapping[str, Any]) -> dict[str, Any]:
    copied_keys = ("file", "startLine", "endLine", "kind", "name", "headline", "score", "scoreType")
    return {
        **{key: hit[key] for key in copied_keys},
        "scoreBreakdown": hit["scoreBreakdown"],
        "snippet": hit["text"][:MAX_SNIPPET_CHARS],
    }


def _find_located_code(engine: "SearchEngine", root: Path, finding: TriageRecord) -> Iterator[dict[str, Any]]:
    locations = [candidate for candidate in finding.locations if candidate.start_line]
    if not locations:
        return
    with engine.hit_source.open_reader() as reading:
        for location in islice(locations, MAX_LOCATIONS):
            path = strip_root(root, location.path).removeprefix("/").removeprefix("./")
            values = (path, location.start_line, location.start_line)
            matches = list(reading.catalogue.connection.execute(_SELECT_ENCLOSING_CHUNK_SQL, values))
            rows = [reading.read_row(path, ordinal) for (ordinal,) in matches]
            yield {
                "query": f"{path}:{location.start_line}",
                "mode": "code",
                "about": "location",
                "hits": [_build_location_hit(row, reading, location) for row in rows],
            }


def _build_location_hit(row: "HitRow", reading: "CatalogueReader", location: Location) -> dict[str, Any]:
    lines = reading.read_lines(row)[location.start_line - 1 : max(location.end_line, location.start_line)]
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
        "snippet": "\n".join(lines)[:MAX_SNIPPET_CHARS],
    }
