"""What a worker is given, and how it hands back what it made.

A worker is a module with `async def run(job: Job) -> Mapping[str, Any]`. It reads artifacts and
the two checkouts, writes artifacts, and returns a few small facts, which are recorded as the
output of the step and given to every later worker. It never touches the store: what it wrote
counts only once the engine has recorded it. The same job must give the same artifacts.

It fails by raising `ToolError`, with `retryable` set when the same step may succeed later.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import timestamp
from cleats.toolsets.launch import artifacts
from cleats.toolsets.launch.folder import RunFolder

HUSHED = "(a secret)"
"""What stands where a secret was."""

SHORTEST = 6
"""Characters of a secret that is looked for: a shorter one is a part of many words."""


def _silence(_said: Mapping[str, Any]) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One step of one run."""

    run_id: str
    step: str
    worker: str
    scope: str
    """What the step is about, when there are several of its kind: the section of a draft."""
    attempt: int
    config: Mapping[str, Any]
    """The normalised configuration of the run, with its real addresses."""
    root: Path
    """The folder of the run."""
    inputs: Mapping[str, str]
    """Every artifact that the run has so far: its name and hash."""
    facts: Mapping[str, Any]
    """What the steps before returned, by step: `facts["clone"]["repo_sha"]`."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Only for a step that publishes or asks a model. Never written, never printed."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    """What this job has written: names and hashes."""
    left: dict[str, str] = field(default_factory=dict)
    """Of these, what counts although the job fails."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """What this job has to say for the log of the run, in order."""
    say: Callable[[Mapping[str, Any]], None] = field(default=_silence, repr=False, compare=False)

    @classmethod
    def of(cls, order: Mapping[str, Any], say: Callable[[Mapping[str, Any]], None]) -> Self:
        """Read an order that `as_json` wrote."""
        return cls(**{**order, "root": Path(order["root"])}, say=say)

    def as_json(self) -> dict[str, Any]:
        """The order for the worker's process. It holds the secrets: it goes into a pipe only."""
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
        """The checkout of the source; only read it."""
        return RunFolder(self.root).repo

    @property
    def site(self) -> Path:
        """The checkout of the site; only `apply` changes it."""
        return RunFolder(self.root).site

    def has(self, name: str) -> bool:
        """Whether there is such an artifact, written before or by this job."""
        return name in self.outputs or name in self.inputs

    def read(self, name: str) -> bytes:
        """The bytes of an artifact.

        Raises:
            ToolError: INTERNAL, it is not there or damaged: the steps are out of order.
        """
        digest = self.outputs.get(name) or self.inputs.get(name)
        if digest is None:
            raise ToolError(
                ErrorCode.INTERNAL,
                f"{self.worker} needs {name}, which no step has written",
                details={"cause_class": "MissingInput", "artifact": name},
            )
        return RunFolder(self.root).get(digest)

    def json(self, name: str) -> Any:
        """An artifact as a document; the same errors as `read`."""
        return json.loads(self.read(name))

    def write(self, name: str, data: bytes | str | Mapping[str, Any]) -> None:
        """Write an artifact; a later one of the same name takes its place.

        A document is written canonically and must fit the schema of its name.

        Raises:
            ToolError: SCHEMA_VALIDATION_FAILED; INVALID_INPUT for an impossible name.
        """
        artifacts.check_name(name)
        if isinstance(data, Mapping):
            artifacts.check(name, data)
            data = artifacts.canonical(data)
        elif isinstance(data, str):
            data = data.encode()
        self.outputs[name] = RunFolder(self.root).put(self.hushed(data))

    def leave(self, name: str, data: Mapping[str, Any]) -> None:
        """Write an artifact that counts also when the job fails, since it says why.

        Raises:
            ToolError: as `write`.
        """
        self.write(name, data)
        self.left[name] = self.outputs[name]

    def hushed(self, data: bytes) -> bytes:
        """Bytes without the secrets of the job: whoever is sent one may repeat it in an answer."""
        for secret in self.secrets.values():
            forms = {secret, json.dumps(secret)[1:-1]} if len(secret) >= SHORTEST else ()
            for form in forms:
                data = data.replace(form.encode(), HUSHED.encode())
        return data

    def tell(self, message: str, done: float | None = None, total: float | None = None) -> None:
        """Say how far the step is. Cheap; may be lost."""
        self.say({"tell": {"message": message, "done": done, "total": total}})

    def event(self, kind: str, /, **payload: Any) -> None:
        """Add an event to the log of the run, recorded together with the step.

        For gates and model calls. Artifacts, issues of the report, work items and states are
        logged by the engine.
        """
        now = time.time_ns()
        self.events.append(
            {"type": kind, "ts": timestamp(now / 1e9), "ns": now, "payload": payload}
        )
