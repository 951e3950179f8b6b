"""Runs one gate to a verdict, whatever the gate does.

A gate that takes too long, that fails, or whose tool is missing has not passed: each of these is
a blocker. What a gate says is ordered, freed of this machine's folders, and named the same way in
every run of the same site.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Thread
from typing import cast

import anyio

from cleats.toolsets.launch.gates.model import Finding, Gate, Said, blocker
from cleats.toolsets.launch.gates.remedies import REMEDIES
from cleats.toolsets.launch.gates.site import Site
from cleats.toolsets.launch.issues import BLOCKING, Issue, Severity


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a gate."""

    name: str
    ok: bool
    issues: tuple[Issue, ...]
    log: str


async def judge(gate: Gate, site: Site, *, strict: bool = False) -> Verdict:
    """Run a gate within its time. A strict judge takes warnings for errors."""
    missing = [tool for tool in gate.tools if tool not in site.programs]
    if missing:
        message = f"the gate needs {' and '.join(missing)}, which is not installed"
        return settle(gate.name, [blocker("GATE_TOOL_MISSING", message)], site, strict=strict)
    seconds = gate.seconds(site.level)
    try:
        with anyio.fail_after(seconds):
            said = await _said(gate, site)
    except TimeoutError:
        message = f"the gate did not end within {seconds:g} seconds"
        said = [blocker("GATE_TIMEOUT", message)]
    except Exception as crash:  # noqa: BLE001 - a gate that fails must not pass
        message = f"the gate failed: {type(crash).__name__}: {crash}"
        said = [blocker("GATE_CRASHED", message)]
    if gate.reads_pages:
        said = [each for each in said if isinstance(each, str) or site.ours(each.path, each.line)]
    return settle(gate.name, said, site, strict=strict)


def settle(name: str, said: Iterable[Said], site: Site, *, strict: bool) -> Verdict:
    """Turn what a gate said into issues, a log and a verdict."""
    found: dict[str, Issue] = {}
    lines = []
    for each in said:
        if isinstance(each, str):
            lines.append(site.scrub(each))
        else:
            issue = _issue(name, each, site, strict=strict)
            found.setdefault(issue.issue_id, issue)
    issues = tuple(sorted(found.values(), key=lambda issue: issue.sort_key))
    ok = not any(issue.severity in BLOCKING for issue in issues)
    lines.extend(_line(issue) for issue in issues)
    log = "\n".join([f"gate {name}: {'passed' if ok else 'failed'}", *lines])
    return Verdict(name, ok, issues, log + "\n")


async def _said(gate: Gate, site: Site) -> list[Said]:
    if gate.errand is not None:
        return list(await gate.errand(site))
    check = gate.check
    if check is None:
        raise NotImplementedError(gate.name)
    return await _in_thread(lambda: list(check(site)))


async def _in_thread(work: Callable[[], list[Said]]) -> list[Said]:
    """Wait for work in a thread that may be left behind: the process ends without it."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[list[Said]] = loop.create_future()

    def deliver(value: list[Said] | None, error: BaseException | None) -> None:
        if result.done():  # nobody waits any more
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value or [])

    def body() -> None:
        value: list[Said] | None = None
        error: BaseException | None = None
        try:
            value = work()
        except BaseException as crash:  # noqa: BLE001 - handed to whoever waits
            error = crash
        try:
            loop.call_soon_threadsafe(deliver, value, error)
        except RuntimeError:  # the loop is closed, and so is the validation
            return

    Thread(target=body, name="gate", daemon=True).start()
    return await result


def _issue(gate: str, finding: Finding, site: Site, *, strict: bool) -> Issue:
    severity = "error" if strict and finding.severity == "warn" else finding.severity
    return Issue.make(
        gate=gate,
        severity=cast("Severity", severity),
        message=site.scrub(finding.message),
        error_code=finding.code,
        path=finding.path,
        line=finding.line,
        suggested_fix=REMEDIES[finding.code],
        files=(finding.path,) if finding.path else (),
    )


def _line(issue: Issue) -> str:
    place = f" {issue.path}:{issue.line}" if issue.line else f" {issue.path}" if issue.path else ""
    return f"{issue.severity} {issue.error_code}{place}: {issue.message}"
