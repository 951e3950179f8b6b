"""The structure of a record: a finding of a scanner, or a decision about one.

Names on the wire and on disk are camelCase; empty fields are omitted. The content comes from
outside, so all texts and lists have limited lengths.
"""

import hashlib
import re
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

RecordType = Literal["finding", "decision"]
DecisionStatus = Literal["fix", "accept", "defer", "false_positive", "not_affected"]

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
