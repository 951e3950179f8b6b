"""All gates in the order in which they run, and the execution of one gate.

A gate that times out, crashes or lacks its tool has not passed: each of these is a blocker. Issues
are sorted, stripped of the folders of this machine, and get the same ids in every run.
"""

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import import_module
from inspect import iscoroutinefunction
from threading import Thread
from typing import Any, cast

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.gates.model import FixRule, Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.runs.issues import BLOCKING_SEVERITIES, Issue
from cleats.toolsets.launch.site.programs import MIN_VERSIONS, InstalledProgram, find_programs, format_install_hint

GATE_NAMES = (
    "schema",
    "allowed_paths",
    "budgets",
    "conflict_markers",
    "secrets",
    "front_matter",
    "template_tokens",
    "markdown_lint",
    "readability",
    "hugo_config",
    "hugo_build",
    "mkdocs_config",
    "mkdocs_build",
    "internal_links",
    "external_links",
    "snippet_syntax",
    "truth_lock",
    "consistency",
    "content_distribution",
)
"""The cheap gates come first, and the build before the link gates, which inspect its output."""


def load_gate(name: str) -> Gate:
    """Import and return the gate of this name; most runs need only some of the modules."""
    gate: Gate = import_module(f"cleats.toolsets.launch.gates.{name}").GATE
    return gate


def list_issue_kinds(module_name: str) -> list[IssueKind]:
    """Return the kinds of issues that a module of this package defines."""
    module = import_module(f"cleats.toolsets.launch.gates.{module_name}")
    return [value for value in vars(module).values() if isinstance(value, IssueKind)]


def load_fixes(gate_names: Iterable[str]) -> dict[str, FixRule]:
    """Return the fixes of these gates by error code; names of other reporters are ignored."""
    known_names = set(gate_names) & set(GATE_NAMES)
    kinds = [kind for name in known_names for kind in list_issue_kinds(name)]
    return {kind.code: kind.fix for kind in kinds if kind.fix is not None}


def select_gates(names: Iterable[str]) -> list[Gate]:
    """Return the gates that a profile names, in the order in which they run.

    Raises:
        ToolError: SCHEMA_VALIDATION_FAILED when a name is unknown.
    """
    requested = set(names)
    if unknown := sorted(requested - set(GATE_NAMES)):
        raise ToolError(
            ErrorCode.SCHEMA_VALIDATION_FAILED,
            f"unknown gate {unknown[0]!r}",
            details={"unknown": unknown, "known": list(GATE_NAMES)},
        )
    return [load_gate(name) for name in GATE_NAMES if name in requested]


async def require_programs(
    gates: Iterable[Gate], settings: Mapping[str, Any], profile: str
) -> dict[str, InstalledProgram]:
    """Return the programs that gates need.

    Raises:
        ToolError: TOOLCHAIN_MISSING when one is not installed, does not work or is too old: without
            it no validation could pass.
    """
    names = {tool for gate in gates for tool in gate.tools}
    programs = await find_programs(names, settings)
    reasons = {name: f"{name} is not installed" for name in sorted(names - programs.keys())}
    for name, program in programs.items():
        if program.fault:
            reasons[name] = f"{name} does not work: {program.fault}"
        elif program.is_too_old:
            oldest = ".".join(map(str, MIN_VERSIONS[name]))
            reasons[name] = f"{name} {program.version} is too old; {oldest} or newer is required"
    if reasons:
        raise ToolError(
            ErrorCode.TOOLCHAIN_MISSING,
            f"The gates of the profile {profile!r} cannot run: {'; '.join(reasons.values())}.",
            hint=" ".join(map(format_install_hint, sorted(reasons))),
            details={
                "missing": sorted(reasons),
                "too_old": {name: program.version for name, program in programs.items() if program.is_too_old},
                "broken": {name: program.fault for name, program in programs.items() if program.fault},
            },
        )
    return programs


TOOL_MISSING = IssueKind("GATE_TOOL_MISSING", "blocker", "Install the tool; `cleats doctor` says how.")
GATE_TIMED_OUT = IssueKind("GATE_TIMEOUT", "blocker", "See the log of the gate; retry when the machine is less busy.")
GATE_FAILED = IssueKind("GATE_CRASHED", "blocker", "Report it with the log of the gate.")


@dataclass(frozen=True, slots=True)
class GateVerdict:
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
    seconds = gate.local_seconds if site.level == "local" else gate.strict_seconds
    try:
        with anyio.fail_after(seconds):
            if iscoroutinefunction(gate.check):
                gate_messages = list(await gate.check(site))
            else:
                gate_messages = await _run_in_thread(gate, site)
    except TimeoutError:
        runner = " and ".join(gate.tools) or "the gate"
        gate_messages = [GATE_TIMED_OUT.draft(f"{runner} did not end within {seconds:g} seconds")]
    except Exception as crash:  # noqa: BLE001 - a gate that fails must not pass
        gate_messages = [GATE_FAILED.draft(f"the gate failed: {type(crash).__name__}: {crash}")]
    if gate.reads_pages:
        gate_messages = [it for it in gate_messages if isinstance(it, str) or site.is_from_launch(it.path, it.line)]
    return build_verdict(gate.name, gate_messages, site, strict=strict)


def build_verdict(name: str, gate_messages: Iterable[GateMessage], site: LaunchSite, *, strict: bool) -> GateVerdict:
    """Turn the messages of a gate into issues, a log and a verdict."""
    issues_by_id: dict[str, Issue] = {}
    lines = []
    for gate_message in gate_messages:
        if isinstance(gate_message, str):
            lines.append(site.scrub(gate_message))
        else:
            draft = gate_message
            issue = Issue.create(
                gate=name,
                severity="error" if strict and draft.severity == "warn" else draft.severity,
                message=site.scrub(draft.message),
                error_code=draft.kind.code,
                path=draft.path,
                line=draft.line,
                suggested_fix=draft.kind.remedy,
                files=(draft.path,) if draft.path else (),
            )
            issues_by_id.setdefault(issue.issue_id, issue)
    issues = tuple(sorted(issues_by_id.values(), key=lambda issue: issue.sort_key))
    ok = not any(issue.severity in BLOCKING_SEVERITIES for issue in issues)
    for issue in issues:
        location = f" {issue.path}:{issue.line}" if issue.line else f" {issue.path}" if issue.path else ""
        lines.append(f"{issue.severity} {issue.error_code}{location}: {issue.message}")
    log = "\n".join([f"gate {name}: {'passed' if ok else 'failed'}", *lines])
    return GateVerdict(name, ok, issues, log + "\n")


async def _run_in_thread(gate: Gate, site: LaunchSite) -> list[GateMessage]:
    """Run a check in a daemon thread, which may be abandoned: the process exits without it."""
    finished: Future[list[GateMessage]] = Future()
    finished.set_running_or_notify_cancel()  # so that a timeout does not cancel it under the thread

    def run_work() -> None:
        try:
            finished.set_result(list(cast("Iterable[GateMessage]", gate.check(site))))
        except BaseException as crash:  # noqa: BLE001 - passed on to the waiting task
            finished.set_exception(crash)

    Thread(target=run_work, name="gate", daemon=True).start()
    return await asyncio.wrap_future(finished)
