"""A record, which is a finding of a scanner or a decision about one: its structure, and its Markdown page.

Names on the wire and on disk are camelCase; empty fields are omitted. The content comes from
outside, so all texts and lists have limited lengths.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from cleats.toolsets.code.analysis.facts import Chunk, FileFacts

RecordType = Literal["finding", "decision"]
DecisionStatus = Literal["fix", "accept", "defer", "false_positive", "not_affected"]

SOURCE_NAMES: Final = (
    *("dependabot", "aws_inspector", "sarif", "osv", "pip_audit", "npm_audit", "cyclonedx"),
    *("generic", "manual"),
)
"""The names of the sources of findings; a command lists them before it imports the readers."""

RECORD_ID_PATTERN: Final = re.compile(r"[0-9a-f]{40}")


class _RecordPart(Struct, rename="camel", omit_defaults=True):
    pass


class Cvss(_RecordPart):
    """The severity of a vulnerability on the CVSS scale of FIRST."""

    score: float | None = None
    vector: str = ""
    version: str = ""


class Vulnerability(_RecordPart):
    """The weakness that a finding is about."""

    vuln_id: str = ""
    """The identifier used by the source: an advisory, a CVE or a rule."""
    cve: str = ""
    aliases: list[str] = []
    title: str = ""
    description: str = ""
    severity: str = ""
    """critical, high, medium, low, info or none; empty if unknown."""
    cvss: Cvss | None = None
    cwe: list[str] = []
    references: list[str] = []


class Package(_RecordPart):
    """The package that has the vulnerability."""

    name: str = ""
    ecosystem: str = ""
    installed_version: str = ""
    affected_range: str = ""
    fixed_version: str = ""
    manifest_path: str = ""
    purl: str = ""


class Asset(_RecordPart):
    """The resource on which the package runs."""

    asset_id: str = ""
    asset_type: str = ""
    account: str = ""
    region: str = ""
    tags: dict[str, str] = {}


class Exposure(_RecordPart):
    """The reachability of the asset, and its value."""

    internet_exposed: bool | None = None
    public_endpoint: str = ""
    data_sensitivity: str = ""
    business_criticality: str = ""
    compensating_controls: list[str] = []


class Location(_RecordPart):
    """A place in the code that a scanner reported."""

    path: str = ""
    start_line: int = 0
    end_line: int = 0
    snippet: str = ""


class Decision(_RecordPart):
    """A decision about a finding."""

    finding_record_id: str
    status: DecisionStatus
    justification: str = ""
    justification_codes: list[str] = []
    reviewer: str = ""
    expires_at: str = ""
    """The last day on which the decision applies, or a time in UTC."""
    evidence_refs: list[str] = []


class TriageRecord(_RecordPart, kw_only=True):
    """A complete finding or decision."""

    record_id: str = ""
    record_type: RecordType = "finding"
    source: str = ""
    created_at: str = ""
    """Time at which the record was first saved."""
    updated_at: str = ""
    """Time at which the record last changed."""
    service: str = ""
    env: str = ""
    team: str = ""
    owner: str = ""
    repo: str = ""
    status: str = ""
    """Status of a finding according to its source: open, fixed, dismissed."""
    labels: dict[str, str] = {}
    vuln: Vulnerability = msgspec.field(default_factory=Vulnerability)
    package: Package = msgspec.field(default_factory=Package)
    asset: Asset = msgspec.field(default_factory=Asset)
    exposure: Exposure = msgspec.field(default_factory=Exposure)
    locations: list[Location] = []
    decision: Decision | None = None
    raw: Any = None
    """The finding as the source wrote it, unless it is too long to be saved."""
    parse_warnings: list[str] = []

    @property
    def name(self) -> str:
        """The name of the record in lists."""
        return self.vuln.vuln_id or self.vuln.title or self.package.name or self.record_id

    @property
    def effective_status(self) -> str:
        """The status of the decision, or else the status according to the source."""
        return self.decision.status if self.decision else self.status


encode_json = msgspec.json.Encoder(order="deterministic").encode
decode_record = msgspec.json.Decoder(TriageRecord).decode


def format_current_time() -> str:
    """Return the current time in the format of records."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def compute_record_id(source: str, key: str) -> str:
    """Return the permanent id of what a source identifies by a key."""
    return hashlib.sha1(f"{source}:{key}".encode(), usedforsecurity=False).hexdigest()


def collect_filter_fields(record: TriageRecord) -> dict[str, str]:
    """Return the fields of a record that filters can use, without empty ones."""
    promoted = {
        "recordType": record.record_type,
        "source": record.source,
        "recordId": record.record_id,
        "service": record.service,
        "env": record.env,
        "team": record.team,
        "owner": record.owner,
        "vulnId": record.vuln.vuln_id,
        "cve": record.vuln.cve,
        "packageName": record.package.name,
        "packageEcosystem": record.package.ecosystem,
        "severity": record.vuln.severity,
        "status": record.effective_status,
        "assetId": record.asset.asset_id,
    }
    return {key: value for key, value in {**record.labels, **promoted}.items() if value}


def to_public_dict(record: TriageRecord) -> dict[str, Any]:
    """Return a record for readers, without the original of the source, which is in the file."""
    record_fields: dict[str, Any] = msgspec.to_builtins(record)
    record_fields.pop("raw", None)
    nonempty_fields = {key: value for key, value in record_fields.items() if value}
    return {"recordType": record.record_type, **nonempty_fields}


def extract_record_facts(data: bytes) -> tuple[FileFacts, bytes]:
    """Return the facts of a record, as one chunk, and the page that the chunk covers.

    Raises:
        msgspec.MsgspecError: The data is not a record.
    """
    record = decode_record(data)
    text = render_page(record).encode(errors="replace")
    lines = text.count(b"\n")
    doc, fields = _format_headline(record), collect_filter_fields(record)
    chunk = Chunk("record", record.name, 0, len(text), 1, lines, mode="records", doc=doc, fields=fields)
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
    cvss = vuln.cvss or Cvss()
    score = "" if cvss.score is None else f"CVSS {cvss.score:g}"
    headline = _format_headline(record)
    yield f"# {record.name}" if headline == record.name else f"# {record.name}: {headline}"
    yield ""
    if record.decision is not None:
        yield from _render_decision(record.decision)
    yield from _render_rows(
        ("Record", f"{record.record_type} {record.record_id} from {record.source}"),
        ("CVE", vuln.cve),
        ("Also known as", ", ".join(alias for alias in vuln.aliases if alias not in (vuln.cve, vuln.vuln_id))),
        ("Severity", ", ".join(filter(None, (vuln.severity, score, cvss.vector)))),
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
        *record.labels.items(),
        *((f"Tag {key}", value) for key, value in asset.tags.items()),
    )
    yield from _render_exposure(record)
    yield from _render_section("Where", map(_format_location, record.locations))
    if vuln.description:
        yield from ("## Description", "", vuln.description, "")
    yield from _render_section("References", vuln.references)


def _render_rows(*rows: tuple[str, str]) -> Iterator[str]:
    items = [f"- {name}: {value}" for name, value in rows if value]
    if items:
        yield from (*items, "")


def _render_decision(decision: Decision) -> Iterator[str]:
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
    text = f"{location.path}:{location.start_line}" if location.start_line else location.path
    snippet = " ".join(location.snippet.split())
    return f"{text} {snippet}" if snippet else text


def _render_section(title: str, items: Iterable[str]) -> Iterator[str]:
    bullets = [f"- {item}" for item in items]
    if bullets:
        yield from (f"## {title}", "", *bullets, "")
