"""The job of a worker: its inputs, and the methods that return its outputs.

A worker is a module with `async def run(job: WorkerJob) -> Mapping[str, Any]`. It reads artifacts
and the two checkouts, writes artifacts, and returns a few small facts, which are recorded as the
output of the step and passed to every later worker. It never touches the store: its artifacts count
only once the engine has recorded them. The same job must give the same artifacts.

It fails by raising `ToolError`, with `retryable` set if the same step may succeed later.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import format_timestamp
from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.runs.storage import RunFolder

SECRET_PLACEHOLDER = "(a secret)"
"""Replaces a secret in any output."""

MIN_SECRET_CHARACTERS = 6
"""Length of the shortest secret that is redacted: a shorter one is part of many words."""


def _discard_message(_message: Mapping[str, Any]) -> None:
    """Discard a message: nobody listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJob:
    """One step of one run."""

    run_id: str
    step: str
    worker: str
    scope: str
    """The subject of the step if there are several of its kind, such as the section of a draft."""
    attempt: int
    config: Mapping[str, Any]
    """The normalised configuration of the run, with unredacted URLs."""
    root: Path
    """The folder of the run."""
    inputs: Mapping[str, str]
    """The hashes of all artifacts that the run has so far, by name."""
    facts: Mapping[str, Any]
    """The facts that earlier steps returned, by step: `facts["clone"]["repo_sha"]`."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Only for a step that publishes or calls a model. Never written, never printed."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    """The hashes of the artifacts that this job has written, by name."""
    failure_outputs: dict[str, str] = field(default_factory=dict)
    """The outputs that count even if the job fails."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """The events of this job for the log of the run, in order."""
    send: Callable[[Mapping[str, Any]], None] = field(default=_discard_message, repr=False, compare=False)

    @classmethod
    def from_order(cls, order: Mapping[str, Any], send: Callable[[Mapping[str, Any]], None]) -> Self:
        """Parse an order that `as_json` wrote."""
        return cls(**{**order, "root": Path(order["root"])}, send=send)

    def as_json(self) -> dict[str, Any]:
        """Return the order for the worker process. It contains secrets: use a pipe only."""
        return {
            "run_id": self.run_id,
            "step": self.step,
            "worker": self.worker,
            "scope": self.scope,
            "attempt": self.attempt,
            "config": self.config,
            "root": str(self.root),
            "inputs": self.inputs,
            "facts": self.facts,
            "secrets": self.secrets,
            "settings": self.settings,
        }

    @property
    def repo(self) -> Path:
        """The checkout of the source, which is read-only."""
        return RunFolder(self.root).repo

    @property
    def site(self) -> Path:
        """The checkout of the site, which only `apply` changes."""
        return RunFolder(self.root).site

    def has_artifact(self, name: str) -> bool:
        """Return whether an artifact exists, written by an earlier step or by this job."""
        return name in self.outputs or name in self.inputs

    def read(self, name: str) -> bytes:
        """Return the bytes of an artifact.

        Raises:
            ToolError: INTERNAL, it is missing or damaged: the steps are out of order.
        """
        digest = self.outputs.get(name) or self.inputs.get(name)
        if digest is None:
            raise ToolError(
                ErrorCode.INTERNAL,
                f"{self.worker} needs {name}, which no step has written",
                details={"cause_class": "MissingInput", "artifact": name},
            )
        return RunFolder(self.root).get_object(digest)

    def read_json(self, name: str) -> Any:
        """Return an artifact as a document; the same errors as `read`."""
        return json.loads(self.read(name))

    def write(self, name: str, data: bytes | str | Mapping[str, Any]) -> None:
        """Write an artifact; a later one of the same name replaces it.

        A document is written as canonical JSON and must match the schema of its name.

        Raises:
            ToolError: SCHEMA_VALIDATION_FAILED; INVALID_INPUT for an invalid name.
        """
        artifacts.check_name(name)
        if isinstance(data, Mapping):
            artifacts.check_document(name, data)
            data = artifacts.encode_canonical_json(data)
        elif isinstance(data, str):
            data = data.encode()
        self.outputs[name] = RunFolder(self.root).put_object(self.redact_secrets(data))

    def write_on_failure(self, name: str, data: Mapping[str, Any]) -> None:
        """Write an artifact that counts even if the job fails, because it explains the failure.

        Raises:
            ToolError: as `write`.
        """
        self.write(name, data)
        self.failure_outputs[name] = self.outputs[name]

    def redact_secrets(self, data: bytes) -> bytes:
        """Return the bytes without the job's secrets: a service may repeat one in its answer."""
        for secret in self.secrets.values():
            spellings = {secret, json.dumps(secret)[1:-1]} if len(secret) >= MIN_SECRET_CHARACTERS else ()
            for spelling in spellings:
                data = data.replace(spelling.encode(), SECRET_PLACEHOLDER.encode())
        return data

    def report_progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        """Report the progress of the step. Cheap; may be lost."""
        self.send({"tell": {"message": message, "done": done, "total": total}})

    def add_event(self, kind: str, /, **payload: Any) -> None:
        """Add an event to the log of the run, recorded together with the step.

        For gates and model calls. The engine logs artifacts, issues of the report, work items and
        states.
        """
        now = time.time_ns()
        self.events.append({"type": kind, "ts": format_timestamp(now / 1e9), "ns": now, "payload": payload})
