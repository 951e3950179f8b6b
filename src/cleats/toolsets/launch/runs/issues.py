"""Issues of a run or of its pages: one value type for gates, fixer, snapshot and replies."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    def create(
        cls,
        *,
        gate: str,
        severity: Severity,
        message: str,
        error_code: str = "",
        path: str = "",
        line: int = 0,
        suggested_fix: str = "",
        files: Iterable[str] = (),
    ) -> Self:
        """Create an issue with its id; errors and blockers must have an error code.

        Raises:
            ValueError: the error code is missing.
        """
        if severity in BLOCKING_SEVERITIES and not error_code:
            raise ValueError(f"an issue of severity {severity} needs an error code: {message}")
        identity = "|".join((gate, error_code, path, str(line), message))
        digest = hashlib.sha256(identity.encode()).hexdigest()
        return cls(
            issue_id=f"iss_{digest[:12]}",
            gate=gate,
            severity=severity,
            message=message,
            error_code=error_code,
            path=path,
            line=line,
            suggested_fix=suggested_fix,
            files=tuple(files),
        )

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Parse an issue that `as_json` wrote."""
        location = document.get("location", {})
        return cls(
            issue_id=document["issue_id"],
            gate=document["gate"],
            severity=document["severity"],
            message=document["message"],
            error_code=document.get("error_code", ""),
            path=location.get("path", ""),
            line=location.get("line", 0),
            suggested_fix=document.get("suggested_fix", ""),
            files=tuple(document.get("files", ())),
            status=document["status"],
        )

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
        document: dict[str, Any] = {
            "issue_id": self.issue_id,
            "gate": self.gate,
            "severity": self.severity,
            "message": self.message,
            "status": self.status,
        }
        if self.error_code:
            document["error_code"] = self.error_code
        if self.files:
            document["files"] = list(self.files)
        if self.path:
            document["location"] = {"path": self.path}
            if self.line:
                document["location"]["line"] = self.line
        if self.suggested_fix:
            document["suggested_fix"] = self.suggested_fix
        return document
