"""Workers in child processes: the order goes to stdin, the result comes from stdout."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.worker_process import run_worker
from cleats.toolsets.launch.drive.step_events import StepResult
from cleats.toolsets.launch.runs.events import EventDraft
from cleats.toolsets.launch.runs.job import WorkerJob

log = logging.getLogger(__name__)

ProgressCallback: TypeAlias = Callable[[str, float | None, float | None], None]
"""Takes a message, the amount done and the total amount."""

MAX_LOGGED_CHARACTERS = 4000
"""Characters of a crashed worker's error output that are logged."""

_WORKER_MODULE = "cleats.toolsets.launch.workers"


class WorkerError(ToolError):
    """A failure that a worker reported, with the events up to the failure.

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

    modules: Mapping[str, str]
    env: Mapping[str, str] | None
    grace: float

    async def run(self, kind: str, job: WorkerJob, report_progress: ProgressCallback) -> StepResult:
        """Run a job in a worker process.

        Raises:
            ToolError: the error that the worker raised; INTERNAL if it crashed or was killed.
        """
        order = {**job.as_json(), "module": self.modules[kind]}

        def handle_line(line: bytes) -> None:
            if line.startswith(b'{"tell"'):
                _forward_progress(line, report_progress)

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
        hint="The server's log has the trace.",
        retryable=was_killed,
        details={"cause_class": cause},
    )


def _parse_message(line: bytes) -> Mapping[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _forward_progress(line: bytes, report_progress: ProgressCallback) -> None:
    progress = _parse_message(line).get("tell")
    if isinstance(progress, dict):
        report_progress(str(progress.get("message", "")), progress.get("done"), progress.get("total"))


def _decode_tail(text: bytes) -> str:
    return text.decode(errors="replace")[-MAX_LOGGED_CHARACTERS:]
