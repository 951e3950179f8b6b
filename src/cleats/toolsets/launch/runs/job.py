"""The job of a worker: its inputs, the methods that return its outputs, and the process that does it.

A worker is an `async def run_<kind>(job: WorkerJob) -> Mapping[str, Any]` in a process of its own: the order goes to
stdin, the result comes from stdout. It reads artifacts and the two checkouts, writes artifacts, and returns a few small
facts, which are recorded as the output of the step and passed to every later worker. It never touches the store: its
artifacts count only once the engine has recorded them. The same job must give the same artifacts.

It fails by raising `ToolError`, with `retryable` set if the same step may succeed later.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import format_timestamp
from cleats.system.worker_process import run_worker
from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.runs.events import EventDraft
from cleats.toolsets.launch.runs.storage import RunFolder

SECRET_PLACEHOLDER = "(a secret)"
"""Replaces a secret in any output."""

MIN_SECRET_CHARACTERS = 6
"""Length of the shortest secret that is redacted: a shorter one is part of many words."""


_ORDER_FIELDS = ("run_id", "step", "worker", "scope", "attempt", "config", "inputs", "facts", "secrets", "settings")


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
    send: Callable[[Mapping[str, Any]], None] = field(default=lambda _message: None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Apply what the clone found out about the site to the configuration; see `site.detection`."""
        changed = self.facts.get("clone", {}).get("config", {})
        object.__setattr__(self, "config", {**self.config, **changed})

    @classmethod
    def from_order(cls, order: Mapping[str, Any], send: Callable[[Mapping[str, Any]], None]) -> Self:
        """Parse an order that `as_json` wrote."""
        return cls(**{**order, "root": Path(order["root"])}, send=send)

    def as_json(self) -> dict[str, Any]:
        """Return the order for the worker process. It contains secrets: use a pipe only."""
        return {"root": str(self.root), **{name: getattr(self, name) for name in _ORDER_FIELDS}}

    @property
    def repo(self) -> Path:
        """The checkout of the source, which is read-only."""
        return RunFolder(self.root).repo

    @property
    def site(self) -> Path:
        """The checkout of the site, which only `apply` changes."""
        return RunFolder(self.root).site

    @property
    def product_name(self) -> str:
        """The name of the product: the configured one, or the one that the repository uses."""
        name = self.config.get("product_name") or self.config.get("product_slug", "")
        facts = self.read_json("product_facts.json") if self.has_artifact("product_facts.json") else {}
        return str(facts.get("product_name") or name)

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

        For gates and model calls. The engine logs artifacts, issues of the report, work items and states.
        """
        now = time.time_ns()
        self.events.append({"type": kind, "ts": format_timestamp(now / 1e9), "ns": now, "payload": payload})


log = logging.getLogger(__name__)

ProgressCallback: TypeAlias = Callable[[str, float | None, float | None], None]
"""Takes a message, the amount done and the total amount."""

MAX_LOGGED_CHARACTERS = 4000
"""Characters of a crashed worker's error output that are logged."""

_WORKER_MODULE = "cleats.toolsets.launch.workers"


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result that a worker returned."""

    facts: Mapping[str, Any]
    artifacts: Mapping[str, str]
    events: tuple[EventDraft, ...]


def encode_failure(error: ToolError) -> dict[str, Any]:
    """Encode an error with all that `WorkerError` needs to make the same one."""
    document: dict[str, Any] = {"code": error.code.name, "message": error.message, "retryable": error.retryable}
    extras = {"hint": error.hint, "details": error.details}
    return document | {name: value for name, value in extras.items() if value}


class WorkerError(ToolError):
    """A failure that `encode_failure` encoded; that of a worker comes with the events up to it.

    `artifacts` are those that explain the failure.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(
            ErrorCode[document["code"]],
            document["message"],
            hint=document.get("hint", ""),
            retryable=document["retryable"],
            details=document.get("details"),
        )
        self.events = parse_event_drafts(document.get("events", ()))
        self.artifacts: Mapping[str, str] = document.get("artifacts", {})


@dataclass(frozen=True, slots=True)
class WorkerLauncher:
    """Starts worker processes."""

    functions: Mapping[str, str]
    env: Mapping[str, str] | None
    grace: float

    async def run(self, kind: str, job: WorkerJob, report_progress: ProgressCallback) -> StepResult:
        """Run a job in a worker process.

        Raises:
            ToolError: the error that the worker raised; INTERNAL if it crashed or was killed.
        """
        order = {**job.as_json(), "function": self.functions[kind]}

        def handle_line(line: bytes) -> None:
            progress = _parse_message(line).get("tell") if line.startswith(b'{"tell"') else None
            if isinstance(progress, dict):
                report_progress(str(progress.get("message", "")), progress.get("done"), progress.get("total"))

        worker = await run_worker(_WORKER_MODULE, json.dumps(order).encode(), handle_line, self.grace, self.env)
        if worker.stderr:
            log.debug("worker.said step=%s: %s", job.step, _decode_tail(worker.stderr))
        message = _parse_message(worker.last_line) if worker.exit_code == 0 else {}
        if "result" in message:
            result = message["result"]
            return StepResult(result["facts"], result["artifacts"], parse_event_drafts(result["events"]))
        if "error" in message:
            raise WorkerError(message["error"])
        log.error("worker.crash step=%s exit=%d: %s", job.step, worker.exit_code, _decode_tail(worker.stderr))
        raise _make_crash_error(job, message, worker.exit_code)


def parse_event_drafts(events: Any) -> tuple[EventDraft, ...]:
    """Parse the events of a job into drafts for the log."""
    return tuple(EventDraft(event["type"], event["payload"], event["ts"], event.get("ns", 0)) for event in events)


def _make_crash_error(job: WorkerJob, message: Mapping[str, Any], exit_code: int) -> ToolError:
    was_killed = exit_code < 0  # from outside, as by the kernel when memory is short: a retry may work
    cause = message.get("crash", {}).get("cause_class", "WorkerKilled" if was_killed else "WorkerExit")
    return ToolError(
        ErrorCode.INTERNAL,
        f"{job.worker} failed unexpectedly in {job.step} ({cause}).",
        hint="The server's log has the traceback.",
        retryable=was_killed,
        details={"cause_class": cause},
    )


def _parse_message(line: bytes) -> Mapping[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _decode_tail(text: bytes) -> str:
    return text.decode(errors="replace")[-MAX_LOGGED_CHARACTERS:]
