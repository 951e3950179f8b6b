"""The worker that validates a worktree (W7): every gate of the profile, and one report.

The report contains no times or paths of the machine, so the same worktree and artifacts give the same bytes.
"""

import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cleats.toolsets.launch.gates import registry, truth_lock, worktree
from cleats.toolsets.launch.gates.model import Gate
from cleats.toolsets.launch.gates.registry import GateVerdict, InstalledProgram, build_verdict, run_gate
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.gates.worktree import list_changes
from cleats.toolsets.launch.patching.change_archive import CHANGE_ARCHIVE_NAME, build_change_archive
from cleats.toolsets.launch.patching.path_guard import hash_worktree
from cleats.toolsets.launch.profiles.model import Profile, load_named_profile
from cleats.toolsets.launch.runs.job import WorkerJob


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
    scratch = job.root / "work" / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)  # left by a validation that was killed
    scratch.mkdir(parents=True)
    try:
        return await _judge_worktree(job, profile, gates, tools, scratch)
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


async def _judge_worktree(
    job: WorkerJob, profile: Profile, gates: Sequence[Gate], tools: Mapping[str, InstalledProgram], scratch: Path
) -> Mapping[str, Any]:
    env, base = job.settings.get("git_env", {}), get_base_commit(job)
    before = await hash_worktree(job.site, base, env)
    site = await survey_site(job, profile, scratch, {name: tool.path for name, tool in tools.items()})
    verdicts: list[GateVerdict] = []
    for finished_count, gate in enumerate(gates):
        job.report_progress(f"Gate {gate.name}", finished_count, len(gates))
        with _log_gate(site, gate.name, verdicts):
            verdicts.append(await run_gate(gate, site, strict=is_strict(job.config)))
    after = await hash_worktree(job.site, base, env)
    edited = worktree.find_edited_files(site)
    with _log_gate(site, "worktree", verdicts):
        remarks = worktree.check_worktree(site, edited, moved=before != after)
        verdicts.append(build_verdict("worktree", remarks, site, strict=is_strict(job.config)))
    issues = sorted((issue for verdict in verdicts for issue in verdict.issues), key=lambda issue: issue.sort_key)
    for verdict in verdicts:
        job.write(f"logs/gate_{verdict.name}.log", verdict.log)
    job.write("truth_lock_report.json", truth_lock.build_truth_report(site, issues))
    report: dict[str, Any] = {
        "schema_version": "1.0",
        "ok": all(verdict.ok for verdict in verdicts),
        "profile": site.level,
        "gates": [
            {"name": verdict.name, "ok": verdict.ok, "log_path": f"logs/gate_{verdict.name}.log"}
            for verdict in verdicts
        ],
        "issues": [issue.as_json() for issue in issues],
        "manual_edits": bool(edited),
        "toolchain": {name: tool.version for name, tool in sorted(tools.items())},
        **({"manual_edited_files": edited} if edited else {}),
    }
    job.write("validation_report.json", report)
    job.write(CHANGE_ARCHIVE_NAME, await build_change_archive(job.site, base, env))
    severities = Counter(issue.severity for issue in issues)
    return {
        "ok": report["ok"],
        "worktree_sha256": after,
        "blockers": severities["blocker"],
        "errors": severities["error"],
        "warnings": severities["warn"],
        "gates": {verdict.name: verdict.ok for verdict in verdicts},
    }


@contextmanager
def _log_gate(site: LaunchSite, name: str, verdicts: Sequence[GateVerdict]) -> Iterator[None]:
    """Log the start and the end of a gate, whose verdict the block appends."""
    site.job.add_event("GATE_RUN_STARTED", gate=name, profile=site.level)
    started_at = time.monotonic()
    yield
    site.job.add_event(
        "GATE_RUN_FINISHED",
        gate=name,
        ok=verdicts[-1].ok,
        issues=len(verdicts[-1].issues),
        duration_ms=round((time.monotonic() - started_at) * 1000),
    )
