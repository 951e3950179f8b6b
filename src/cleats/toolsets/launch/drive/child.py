"""A worker in a process of its own: the order in, the result out, and nothing left behind."""

import json
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime import process
from cleats.toolsets.launch.drive.records import Result
from cleats.toolsets.launch.events import Draft
from cleats.toolsets.launch.workers.job import Job

log = logging.getLogger(__name__)

Tell: TypeAlias = Callable[[str, float | None, float | None], None]
"""Takes a message, and how much is done of how much."""

SHOWN = 4000
"""Characters of what a crashed worker said that go into our log."""

# -P keeps the working folder, which may be a stranger's repository, out of the module path.
_COMMAND = (sys.executable, "-P", "-m", "cleats.toolsets.launch.workers")


class WorkerError(ToolError):
    """A failure that a worker reported, with the events of what it had done by then.

    `artifacts` are those that say why it failed.
    """

    def __init__(self, said: Mapping[str, Any]) -> None:
        super().__init__(
            ErrorCode[said["code"]],
            said["message"],
            hint=said.get("hint", ""),
            retryable=said["retryable"],
            details=said.get("details"),
        )
        self.events = drafts(said.get("events", ()))
        self.artifacts: Mapping[str, str] = said.get("artifacts", {})


@dataclass(frozen=True, slots=True)
class Workers:
    """How workers are started."""

    modules: Mapping[str, str]
    env: Mapping[str, str] | None
    grace: float

    async def run(self, kind: str, job: Job, tell: Tell) -> Result:
        """Have a job done.

        Raises:
            ToolError: what the worker raised; INTERNAL when it crashed or was killed.
        """
        order = {**job.as_json(), "module": self.modules[kind]}

        def heard(stream: str, line: bytes) -> None:
            if stream == "stdout" and line.startswith(b'{"tell"'):
                _pass_on(line, tell)

        done = await process.run(
            _COMMAND,
            env=self.env,
            stdin=json.dumps(order).encode(),
            grace=self.grace,
            on_output=heard,
        )
        if done.stderr:
            log.debug("worker.said step=%s: %s", job.step, _tail(done.stderr))
        last = done.stdout.rstrip(b"\n").rsplit(b"\n", 1)[-1]
        said = _read(last) if done.exit_code == 0 else {}
        if "result" in said:
            result = said["result"]
            return Result(result["facts"], result["artifacts"], drafts(result["events"]))
        if "error" in said:
            raise WorkerError(said["error"])
        log.error("worker.crash step=%s exit=%d: %s", job.step, done.exit_code, _tail(done.stderr))
        raise _crashed(job, said, done.exit_code)


def drafts(events: Any) -> tuple[Draft, ...]:
    """The events of a job as drafts for the log."""
    return tuple(
        Draft(each["type"], each["payload"], each["ts"], each.get("ns", 0)) for each in events
    )


def _crashed(job: Job, said: Mapping[str, Any], code: int) -> ToolError:
    killed = code < 0  # by somebody else, as the kernel when memory is short: it may work later
    cause = said.get("crash", {}).get("cause_class", "WorkerKilled" if killed else "WorkerExit")
    return ToolError(
        ErrorCode.INTERNAL,
        f"{job.worker} failed unexpectedly in {job.step} ({cause}).",
        hint="The server's log has the trace.",
        retryable=killed,
        details={"cause_class": cause},
    )


def _read(line: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _pass_on(line: bytes, tell: Tell) -> None:
    said = _read(line).get("tell")
    if isinstance(said, dict):
        tell(str(said.get("message", "")), said.get("done"), said.get("total"))


def _tail(text: bytes) -> str:
    return text.decode(errors="replace")[-SHOWN:]
