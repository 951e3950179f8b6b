"""The worker that validates a worktree (W7): every gate of the profile, and one report.

The report contains no times or paths of the machine, so the same worktree and artifacts give the same bytes.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.toolsets.launch.gates import registry, truth_lock, worktree
from cleats.toolsets.launch.gates.model import Gate
from cleats.toolsets.launch.gates.registry import GateVerdict, build_verdict, run_gate
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.gates.worktree import list_changes
from cleats.toolsets.launch.patching.change_archive import CHANGE_ARCHIVE_NAME, build_change_archive
from cleats.toolsets.launch.patching.path_guard import hash_worktree
from cleats.toolsets.launch.profiles.model import Profile, load_named_profile
from cleats.toolsets.launch.runs.issues import Issue
from cleats.toolsets.launch.runs.job import WorkerJob


@dataclass(frozen=True, slots=True)
class _ValidationContext:
    """The inputs of a validation."""

    job: WorkerJob
    profile: Profile
    level: str
    gates: Sequence[Gate]
    tools: Mapping[str, registry.InstalledProgram]


async def run_validate(job: WorkerJob) -> Mapping[str, Any]:
    """Validate the worktree; write the reports, the change as an archive, and a log for each gate.

    Raises:
        ToolError: TOOLCHAIN_MISSING, if a gate of the profile lacks its program.
    """
    profile = load_named_profile(job.config["profile"], job.settings.get("profiles", ()))
    level = str(job.config.get("validation_profile", "local"))
    disabled = set() if job.config.get("hugo", {}).get("use_config_gate", True) else {"hugo_config"}
    gates = registry.select_gates(name for name in profile.gates.for_profile(level) if name not in disabled)
    tools = await registry.require_programs(gates, job.settings, level)
    context = _ValidationContext(job, profile, level, gates, tools)
    scratch = job.root / "work" / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)  # left by a validation that was killed
    scratch.mkdir(parents=True)
    try:
        return await _judge_worktree(context, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def is_strict(config: Mapping[str, Any]) -> bool:
    """Return whether warnings keep a gate from passing."""
    level = config.get("validation_profile", "local")
    return level == "prod" or (level == "ci" and config.get("ci_strictness") == "strict")


async def survey_site(
    job: WorkerJob, profile: Profile, scratch: Path, programs: Mapping[str, str] | None = None
) -> LaunchSite:
    """Return the site of a job as the gates see it."""
    env = job.settings.get("git_env", {})
    return LaunchSite(
        job=job,
        profile=profile,
        level=str(job.config.get("validation_profile", "local")),
        scratch=scratch,
        changes=await list_changes(job.site, get_base_commit(job), env),
        programs=programs or {},
    )


def get_base_commit(job: WorkerJob) -> str:
    """Return the commit of the site that the run started from."""
    return str(job.read_json("site_context.json")["site"]["resolved_sha"])


async def _judge_worktree(context: _ValidationContext, scratch: Path) -> Mapping[str, Any]:
    job = context.job
    env = job.settings.get("git_env", {})
    before = await hash_worktree(job.site, get_base_commit(job), env)
    programs = {name: tool.path for name, tool in context.tools.items()}
    site = await survey_site(job, context.profile, scratch, programs)
    verdicts = [
        await _judge_gate(context, gate, site, finished_count) for finished_count, gate in enumerate(context.gates)
    ]
    after = await hash_worktree(job.site, get_base_commit(job), env)
    edited = worktree.find_edited_files(site)
    job.add_event("GATE_RUN_STARTED", gate="worktree", profile=context.level)
    started_at = time.monotonic()
    remarks = worktree.check_worktree(site, edited, moved=before != after)
    verdicts.append(build_verdict("worktree", remarks, site, strict=is_strict(job.config)))
    _log_gate_finished(job, verdicts[-1], started_at)
    issues = sorted((issue for verdict in verdicts for issue in verdict.issues), key=lambda issue: issue.sort_key)
    for verdict in verdicts:
        job.write(f"logs/gate_{verdict.name}.log", verdict.log)
    job.write("truth_lock_report.json", truth_lock.build_truth_report(site, issues))
    report = _build_report(context, verdicts, issues, edited)
    job.write("validation_report.json", report)
    job.write(CHANGE_ARCHIVE_NAME, await build_change_archive(job.site, get_base_commit(job), env))
    return {
        "ok": report["ok"],
        "worktree_sha256": after,
        "blockers": _count_issues(issues, "blocker"),
        "errors": _count_issues(issues, "error"),
        "warnings": _count_issues(issues, "warn"),
        "gates": {gate_verdict.name: gate_verdict.ok for gate_verdict in verdicts},
    }


async def _judge_gate(context: _ValidationContext, gate: Gate, site: LaunchSite, finished_count: int) -> GateVerdict:
    job = context.job
    job.report_progress(f"Gate {gate.name}", finished_count, len(context.gates))
    job.add_event("GATE_RUN_STARTED", gate=gate.name, profile=context.level)
    started_at = time.monotonic()
    verdict = await run_gate(gate, site, strict=is_strict(job.config))
    _log_gate_finished(job, verdict, started_at)
    return verdict


def _log_gate_finished(job: WorkerJob, verdict: GateVerdict, started_at: float) -> None:
    job.add_event(
        "GATE_RUN_FINISHED",
        gate=verdict.name,
        ok=verdict.ok,
        issues=len(verdict.issues),
        duration_ms=round((time.monotonic() - started_at) * 1000),
    )


def _build_report(
    context: _ValidationContext, verdicts: Sequence[GateVerdict], issues: Sequence[Issue], edited: Sequence[str]
) -> dict[str, Any]:
    report: dict[str, Any] = {
        "schema_version": "1.0",
        "ok": all(verdict.ok for verdict in verdicts),
        "profile": context.level,
        "gates": [
            {"name": gate_verdict.name, "ok": gate_verdict.ok, "log_path": f"logs/gate_{gate_verdict.name}.log"}
            for gate_verdict in verdicts
        ],
        "issues": [issue.as_json() for issue in issues],
        "manual_edits": bool(edited),
        "toolchain": {name: tool.version for name, tool in sorted(context.tools.items())},
    }
    if edited:
        report["manual_edited_files"] = list(edited)
    return report


def _count_issues(issues: Sequence[Issue], severity: str) -> int:
    return sum(issue.severity == severity for issue in issues)
