"""Records as Markdown pages, which the index holds and readers see."""

from collections.abc import Iterable, Iterator

from cleats.toolsets.code.analysis.facts import Chunk, FileFacts
from cleats.toolsets.code.records.model import (
    Location,
    TriageRecord,
    Vulnerability,
    collect_filter_fields,
    decode_record,
)


def extract_record_facts(data: bytes) -> tuple[FileFacts, bytes]:
    """Return the facts of a record, as one chunk, and the page that the chunk covers.

    Raises:
        msgspec.MsgspecError: The data is not a record.
    """
    record = decode_record(data)
    text = render_page(record).encode(errors="replace")
    lines = text.count(b"\n")
    chunk = Chunk(
        kind="record",
        name=record.name,
        start=0,
        end=len(text),
        start_line=1,
        end_line=lines,
        mode="records",
        doc=_format_headline(record),
        fields=collect_filter_fields(record),
    )
    return FileFacts("markdown", "records", lines, [chunk]), text


def render_page(record: TriageRecord) -> str:
    """Render the Markdown page of a record."""
    return "\n".join(_render_lines(record)).rstrip() + "\n"


def _format_headline(record: TriageRecord) -> str:
    decision, vuln = record.decision, record.vuln
    subject = vuln.title or record.package.name or record.name
    return f"Decision {decision.status}: {subject}" if decision else subject


def _render_lines(record: TriageRecord) -> Iterator[str]:
    vuln, package, asset = record.vuln, record.package, record.asset
    headline = _format_headline(record)
    yield f"# {record.name}" if headline == record.name else f"# {record.name}: {headline}"
    yield ""
    if record.decision is not None:
        yield from _render_decision(record)
    yield from _render_rows(
        ("Record", f"{record.record_type} {record.record_id} from {record.source}"),
        ("CVE", vuln.cve),
        ("Also known as", ", ".join(_list_other_aliases(vuln))),
        ("Severity", _format_severity(record)),
        ("Status", record.status),
        ("Weakness", ", ".join(vuln.cwe)),
    )
    yield from _render_rows(
        ("Package", " ".join(filter(None, (package.ecosystem, package.name)))),
        ("Installed", package.installed_version),
        ("Affected", package.affected_range),
        ("Fixed in", package.fixed_version),
        ("Manifest", package.manifest_path),
        ("Package URL", package.purl),
    )
    yield from _render_rows(
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
    yield from _render_exposure(record)
    yield from _render_section("Where", map(_format_location, record.locations))
    if vuln.description:
        yield from ("## Description", "", vuln.description, "")
    yield from _render_section("References", vuln.references)


def _list_other_aliases(vuln: Vulnerability) -> list[str]:
    return [alias for alias in vuln.aliases if alias not in (vuln.cve, vuln.vuln_id)]


def _render_rows(*rows: tuple[str, str]) -> Iterator[str]:
    items = [f"- {name}: {value}" for name, value in rows if value]
    if items:
        yield from (*items, "")


def _format_severity(record: TriageRecord) -> str:
    cvss = record.vuln.cvss
    score = f"CVSS {cvss.score:g}" if cvss and cvss.score is not None else ""
    vector = cvss.vector if cvss else ""
    return ", ".join(filter(None, (record.vuln.severity, score, vector)))


def _render_decision(record: TriageRecord) -> Iterator[str]:
    decision = record.decision
    if decision is None:
        return
    yield from _render_rows(
        ("Decision", decision.status),
        ("Because", ", ".join(decision.justification_codes)),
        ("Reviewer", decision.reviewer),
        ("Expires", decision.expires_at),
        ("Finding", decision.finding_record_id),
    )
    if decision.justification:
        yield from (decision.justification, "")
    yield from _render_section("Evidence", decision.evidence_refs)


def _render_exposure(record: TriageRecord) -> Iterator[str]:
    exposure = record.exposure
    exposed = {None: "", True: "yes", False: "no"}[exposure.internet_exposed]
    yield from _render_rows(
        ("Exposed to the internet", exposed),
        ("Public endpoint", exposure.public_endpoint),
        ("Data sensitivity", exposure.data_sensitivity),
        ("Business criticality", exposure.business_criticality),
        ("Compensating controls", "; ".join(exposure.compensating_controls)),
    )


def _format_location(location: Location) -> str:
    text = location.path
    if location.start_line:
        text += f":{location.start_line}"
    snippet = " ".join(location.snippet.split())
    return f"{text} {snippet}" if snippet else text


def _render_section(title: str, items: Iterable[str]) -> Iterator[str]:
    bullets = [f"- {item}" for item in items]
    if bullets:
        yield from (f"## {title}", "", *bullets, "")
