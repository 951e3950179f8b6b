"""What a record is: a finding of a scanner, or a decision about one.

Names on the wire and on disk are camelCase; what is empty is left out. Everything in a record was
said by somebody else, so every text in it has a length and every list an end.
"""

import hashlib
import re
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

RecordType = Literal["finding", "decision"]
Status = Literal["fix", "accept", "defer", "false_positive", "not_affected"]

ID: Final = re.compile(r"[0-9a-f]{40}")


class _Part(Struct, rename="camel", omit_defaults=True):
    pass


class Cvss(_Part):
    """How bad a vulnerability is, on the scale of FIRST."""

    score: float | None = None
    vector: str = ""
    version: str = ""


class Vulnerability(_Part):
    """What is wrong."""

    vuln_id: str = ""
    """As the source calls it: an advisory, a CVE, a rule."""
    cve: str = ""
    aliases: list[str] = []
    title: str = ""
    description: str = ""
    severity: str = ""
    """critical, high, medium, low, info or none; empty when nobody said."""
    cvss: Cvss | None = None
    cwe: list[str] = []
    references: list[str] = []


class Package(_Part):
    """What it is wrong in."""

    name: str = ""
    ecosystem: str = ""
    installed_version: str = ""
    affected_range: str = ""
    fixed_version: str = ""
    manifest_path: str = ""
    purl: str = ""


class Asset(_Part):
    """Where that runs."""

    asset_id: str = ""
    asset_type: str = ""
    account: str = ""
    region: str = ""
    tags: dict[str, str] = {}


class Exposure(_Part):
    """Who can reach it, and what is at stake."""

    internet_exposed: bool | None = None
    public_endpoint: str = ""
    data_sensitivity: str = ""
    business_criticality: str = ""
    compensating_controls: list[str] = []


class Location(_Part):
    """A place in the code that a scanner pointed at."""

    path: str = ""
    start_line: int = 0
    end_line: int = 0
    snippet: str = ""


class Decision(_Part):
    """What somebody made of a finding."""

    finding_record_id: str
    status: Status
    justification: str = ""
    justification_codes: list[str] = []
    reviewer: str = ""
    expires_at: str = ""
    """A date, through which it holds, or a moment in UTC."""
    evidence_refs: list[str] = []


class Record(_Part, kw_only=True):
    """One finding or decision, whole."""

    record_id: str = ""
    record_type: RecordType = "finding"
    source: str = ""
    created_at: str = ""
    """When it was first recorded here."""
    updated_at: str = ""
    """When it last became another one."""
    service: str = ""
    env: str = ""
    team: str = ""
    owner: str = ""
    repo: str = ""
    status: str = ""
    """Of a finding, what its source says: open, fixed, dismissed."""
    labels: dict[str, str] = {}
    vuln: Vulnerability = msgspec.field(default_factory=Vulnerability)
    package: Package = msgspec.field(default_factory=Package)
    asset: Asset = msgspec.field(default_factory=Asset)
    exposure: Exposure = msgspec.field(default_factory=Exposure)
    locations: list[Location] = []
    decision: Decision | None = None
    raw: Any = None
    """The finding as the source wrote it, unless that is too long to keep."""
    parse_warnings: list[str] = []

    @property
    def name(self) -> str:
        """What to call it in a list."""
        return self.vuln.vuln_id or self.vuln.title or self.package.name or self.record_id

    @property
    def standing(self) -> str:
        """Where it stands: what was decided, or what the source says."""
        return self.decision.status if self.decision else self.status


encode = msgspec.json.Encoder(order="deterministic").encode
decode = msgspec.json.Decoder(Record).decode


def now() -> str:
    """The time, as records have it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def record_id(source: str, key: str) -> str:
    """The name of what a source knows by a key: the same for ever."""
    return hashlib.sha1(f"{source}:{key}".encode(), usedforsecurity=False).hexdigest()


def fields(record: Record) -> dict[str, str]:
    """What filters see of a record; what is empty is left out."""
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
        "status": record.standing,
        "assetId": record.asset.asset_id,
    }
    return {key: value for key, value in {**record.labels, **promoted}.items() if value}


def shown(record: Record) -> dict[str, Any]:
    """A record for a reader: without what the source wrote, which is in the file."""
    made: dict[str, Any] = msgspec.to_builtins(record)
    made.pop("raw", None)
    said = {key: value for key, value in made.items() if value}
    return {"recordType": record.record_type, **said}
