"""Issues of a run or of its pages: one value type for gates, fixer, snapshot and replies."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self, TypeAlias

Severity: TypeAlias = Literal["blocker", "error", "warn", "info"]
IssueStatus: TypeAlias = Literal["OPEN", "IN_PROGRESS", "RESOLVED"]

SEVERITY_ORDER: tuple[Severity, ...] = ("blocker", "error", "warn", "info")
"""The order of every list of issues, the worst first."""

BLOCKING_SEVERITIES = frozenset({"blocker", "error"})
"""Severities that keep a gate from passing and that fixes are attempted for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One issue. Its id depends on its text and location, so it is the same in every run."""

    issue_id: str
    gate: str
    severity: Severity
    message: str
    error_code: str = ""
    path: str = ""
    line: int = 0
    suggested_fix: str = ""
    files: tuple[str, ...] = ()
    status: IssueStatus = "OPEN"

    @classmethod
    def create(cls, *, gate: str, severity: Severity, message: str, error_code: str = "", **fields: Any) -> Self:
        """Create an issue with its id; errors and blockers must have an error code.

        Raises:
            ValueError: the error code is missing.
        """
        if severity in BLOCKING_SEVERITIES and not error_code:
            raise ValueError(f"an issue of severity {severity} needs an error code: {message}")
        issue = cls(issue_id="", gate=gate, severity=severity, message=message, error_code=error_code, **fields)
        identity = "|".join((gate, error_code, issue.path, str(issue.line), message))
        return replace(issue, issue_id=f"iss_{hashlib.sha256(identity.encode()).hexdigest()[:12]}")

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Parse an issue that `as_json` wrote."""
        fields = {**document, **document.get("location", {}), "files": tuple(document.get("files", ()))}
        fields.pop("location", None)
        return cls(**fields)

    @property
    def title(self) -> str:
        """The first line of the message."""
        return self.message.split("\n", 1)[0]

    @property
    def sort_key(self) -> tuple[int, str, str, int, str]:
        """The sort key: the worst first, then by gate, location and id."""
        return (SEVERITY_ORDER.index(self.severity), self.gate, self.path, self.line, self.issue_id)

    def as_json(self) -> dict[str, Any]:
        """Return a document of the schema `issue`; empty values are omitted."""
        document = {name: value for name, value in asdict(self).items() if value}
        location = {name: document.pop(name) for name in ("path", "line") if name in document}
        files = {"files": list(self.files)} if self.files else {}
        return {**document, **files, **({"location": location} if self.path else {})}
