"""Execution of one gate, which always ends in a verdict.

A gate that times out, crashes or lacks its tool has not passed: each of these is a blocker. Issues
are sorted, stripped of the folders of this machine, and get the same ids in every run over the same
site.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread

import anyio

from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueDraft, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.runs.issues import BLOCKING_SEVERITIES, Issue

TOOL_MISSING = IssueKind("GATE_TOOL_MISSING", "blocker", "Install the tool; `cleats doctor` says how.")
GATE_TIMED_OUT = IssueKind(
    "GATE_TIMEOUT", "blocker", "Look into the log of the gate; try again when the machine is less busy."
)
GATE_FAILED = IssueKind("GATE_CRASHED", "blocker", "Report it with the log of the gate.")


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The result of a gate."""

    name: str
    ok: bool
    issues: tuple[Issue, ...]
    log: str


async def run_gate(gate: Gate, site: LaunchSite, *, strict: bool = False) -> GateVerdict:
    """Run a gate within its timeout. With `strict`, warnings count as errors."""
    missing = [tool for tool in gate.tools if tool not in site.programs]
    if missing:
        message = f"the gate needs {' and '.join(missing)}, which is not installed"
        return build_verdict(gate.name, [TOOL_MISSING.draft(message)], site, strict=strict)
    seconds = gate.choose_timeout(site.level)
    try:
        with anyio.fail_after(seconds):
            gate_messages = await _run_check(gate, site)
    except TimeoutError:
        gate_messages = [GATE_TIMED_OUT.draft(f"the gate did not end within {seconds:g} seconds")]
    except Exception as crash:  # noqa: BLE001 - a gate that fails must not pass
        gate_messages = [GATE_FAILED.draft(f"the gate failed: {type(crash).__name__}: {crash}")]
    if gate.reads_pages:
        gate_messages = [
            gate_message
            for gate_message in gate_messages
            if isinstance(gate_message, str) or site.is_from_launch(gate_message.path, gate_message.line)
        ]
    return build_verdict(gate.name, gate_messages, site, strict=strict)


def build_verdict(name: str, gate_messages: Iterable[GateMessage], site: LaunchSite, *, strict: bool) -> GateVerdict:
    """Turn the messages of a gate into issues, a log and a verdict."""
    issues_by_id: dict[str, Issue] = {}
    lines = []
    for gate_message in gate_messages:
        if isinstance(gate_message, str):
            lines.append(site.scrub(gate_message))
        else:
            issue = _make_issue(name, gate_message, site, strict=strict)
            issues_by_id.setdefault(issue.issue_id, issue)
    issues = tuple(sorted(issues_by_id.values(), key=lambda issue: issue.sort_key))
    ok = not any(issue.severity in BLOCKING_SEVERITIES for issue in issues)
    lines.extend(_format_issue(issue) for issue in issues)
    log = "\n".join([f"gate {name}: {'passed' if ok else 'failed'}", *lines])
    return GateVerdict(name, ok, issues, log + "\n")


async def _run_check(gate: Gate, site: LaunchSite) -> list[GateMessage]:
    if gate.async_check is not None:
        return list(await gate.async_check(site))
    check = gate.check
    if check is None:
        raise NotImplementedError(gate.name)
    return await _run_in_thread(lambda: list(check(site)))


async def _run_in_thread(work: Callable[[], list[GateMessage]]) -> list[GateMessage]:
    """Run work in a daemon thread, which may be abandoned: the process exits without it."""
    finished: Future[list[GateMessage]] = Future()
    finished.set_running_or_notify_cancel()  # so that a timeout does not cancel it under the thread

    def run_work() -> None:
        try:
            finished.set_result(work())
        except BaseException as crash:  # noqa: BLE001 - passed on to the waiting task
            finished.set_exception(crash)

    Thread(target=run_work, name="gate", daemon=True).start()
    return await asyncio.wrap_future(finished)


def _make_issue(gate: str, draft: IssueDraft, site: LaunchSite, *, strict: bool) -> Issue:
    return Issue.create(
        gate=gate,
        severity="error" if strict and draft.severity == "warn" else draft.severity,
        message=site.scrub(draft.message),
        error_code=draft.kind.code,
        path=draft.path,
        line=draft.line,
        suggested_fix=draft.kind.remedy,
        files=(draft.path,) if draft.path else (),
    )


def _format_issue(issue: Issue) -> str:
    location = f" {issue.path}:{issue.line}" if issue.line else f" {issue.path}" if issue.path else ""
    return f"{issue.severity} {issue.error_code}{location}: {issue.message}"
