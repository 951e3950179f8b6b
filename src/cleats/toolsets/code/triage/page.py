"""A record as a page of Markdown: what the index holds and what a reader sees of it."""

from collections.abc import Iterable, Iterator

from cleats.toolsets.code.facts import Chunk, FileFacts
from cleats.toolsets.code.triage.records import Location, Record, Vulnerability, decode, fields


def facts_of(data: bytes) -> tuple[FileFacts, bytes]:
    """What a record says, as one chunk, and the page that the chunk is of.

    Raises:
        msgspec.MsgspecError: it is no record.
    """
    record = decode(data)
    text = page(record).encode(errors="replace")
    lines = text.count(b"\n")
    chunk = Chunk(
        kind="record",
        name=record.name,
        start=0,
        end=len(text),
        start_line=1,
        end_line=lines,
        mode="records",
        doc=_headline(record),
        fields=fields(record),
    )
    return FileFacts("markdown", "records", lines, [chunk]), text


def page(record: Record) -> str:
    """The page of a record."""
    return "\n".join(_page(record)).rstrip() + "\n"


def _headline(record: Record) -> str:
    decision, vuln = record.decision, record.vuln
    said = vuln.title or record.package.name or record.name
    return f"Decision {decision.status}: {said}" if decision else said


def _page(record: Record) -> Iterator[str]:
    vuln, package, asset = record.vuln, record.package, record.asset
    headline = _headline(record)
    yield f"# {record.name}" if headline == record.name else f"# {record.name}: {headline}"
    yield ""
    if record.decision is not None:
        yield from _decision(record)
    yield from _rows(
        ("Record", f"{record.record_type} {record.record_id} from {record.source}"),
        ("CVE", vuln.cve),
        ("Also known as", ", ".join(_others(vuln))),
        ("Severity", _severity(record)),
        ("Status", record.status),
        ("Weakness", ", ".join(vuln.cwe)),
    )
    yield from _rows(
        ("Package", " ".join(filter(None, (package.ecosystem, package.name)))),
        ("Installed", package.installed_version),
        ("Affected", package.affected_range),
        ("Fixed in", package.fixed_version),
        ("Manifest", package.manifest_path),
        ("Package URL", package.purl),
    )
    yield from _rows(
        ("Service", record.service),
        ("Environment", record.env),
        ("Team", record.team),
        ("Owner", record.owner),
        ("Repository", record.repo),
        ("Asset", " ".join(filter(None, (asset.asset_type, asset.asset_id)))),
        ("Account", " ".join(filter(None, (asset.account, asset.region)))),
        *((key, value) for key, value in record.labels.items()),
        *((f"Tag {key}", value) for key, value in asset.tags.items()),
    )
    yield from _exposure(record)
    yield from _section("Where", map(_place, record.locations))
    if vuln.description:
        yield from ("## Description", "", vuln.description, "")
    yield from _section("References", vuln.references)


def _others(vuln: Vulnerability) -> list[str]:
    return [alias for alias in vuln.aliases if alias not in (vuln.cve, vuln.vuln_id)]


def _rows(*rows: tuple[str, str]) -> Iterator[str]:
    said = [f"- {name}: {value}" for name, value in rows if value]
    if said:
        yield from (*said, "")


def _severity(record: Record) -> str:
    cvss = record.vuln.cvss
    score = f"CVSS {cvss.score:g}" if cvss and cvss.score is not None else ""
    vector = cvss.vector if cvss else ""
    return ", ".join(filter(None, (record.vuln.severity, score, vector)))


def _decision(record: Record) -> Iterator[str]:
    made = record.decision
    if made is None:
        return
    yield from _rows(
        ("Decision", made.status),
        ("Because", ", ".join(made.justification_codes)),
        ("Reviewer", made.reviewer),
        ("Expires", made.expires_at),
        ("Finding", made.finding_record_id),
    )
    if made.justification:
        yield from (made.justification, "")
    yield from _section("Evidence", made.evidence_refs)


def _exposure(record: Record) -> Iterator[str]:
    about = record.exposure
    exposed = {None: "", True: "yes", False: "no"}[about.internet_exposed]
    yield from _rows(
        ("Exposed to the internet", exposed),
        ("Public endpoint", about.public_endpoint),
        ("Data sensitivity", about.data_sensitivity),
        ("Business criticality", about.business_criticality),
        ("Compensating controls", "; ".join(about.compensating_controls)),
    )


def _place(location: Location) -> str:
    place = location.path
    if location.start_line:
        place += f":{location.start_line}"
    snippet = " ".join(location.snippet.split())
    return f"{place} {snippet}" if snippet else place


def _section(title: str, items: Iterable[str]) -> Iterator[str]:
    listed = [f"- {item}" for item in items]
    if listed:
        yield from (f"## {title}", "", *listed, "")
