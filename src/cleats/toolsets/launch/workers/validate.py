"""The verdict about a worktree (W7): every gate of the profile, and one report.

The report holds nothing of when or where it was made, so the same worktree and artifacts give the
same bytes.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch import toolchain
from cleats.toolsets.launch.gates import registry, truth_report, worktree
from cleats.toolsets.launch.gates.changes import changes
from cleats.toolsets.launch.gates.model import Gate
from cleats.toolsets.launch.gates.runner import Verdict, judge, settle
from cleats.toolsets.launch.gates.site import Site
from cleats.toolsets.launch.issues import Issue
from cleats.toolsets.launch.patching.worktree import worktree_hash
from cleats.toolsets.launch.profiles.model import Profile, load
from cleats.toolsets.launch.workers.job import Job


@dataclass(frozen=True, slots=True)
class _Bench:
    """What a validation works with."""

    job: Job
    profile: Profile
    level: str
    gates: Sequence[Gate]
    tools: Mapping[str, toolchain.Tool]


async def run(job: Job) -> Mapping[str, Any]:
    """Judge the worktree; write the report, the truth lock's report, and a log for each gate.

    Raises:
        ToolError: TOOLCHAIN_MISSING, when a gate of a strict profile lacks its tool.
    """
    profile = load(job.config["profile"], [Path(each) for each in job.settings.get("profiles", ())])
    level = str(job.config.get("validation_profile", "local"))
    gates = registry.chosen(_wanted(job.config, profile.gates.of(level)))
    bench = _Bench(job, profile, level, gates, await _tools(job, gates, level))
    scratch = job.root / "work" / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)  # a validation that was killed left it
    scratch.mkdir(parents=True)
    try:
        return await _judged(bench, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _wanted(config: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """The gates of a profile, but for the one that a run may do without."""
    unwanted = set() if config.get("hugo", {}).get("use_config_gate", True) else {"hugo_config"}
    return [name for name in names if name not in unwanted]


def strict(config: Mapping[str, Any]) -> bool:
    """Whether warnings keep a gate from passing."""
    level = config.get("validation_profile", "local")
    return level == "prod" or (level == "ci" and config.get("ci_strictness") == "strict")


async def survey(
    job: Job, profile: Profile, scratch: Path, programs: Mapping[str, str] | None = None
) -> Site:
    """The site of a job, as the gates see it."""
    env = job.settings.get("git_env", {})
    return Site(
        job=job,
        profile=profile,
        level=str(job.config.get("validation_profile", "local")),
        scratch=scratch,
        changes=await changes(job.site, base(job), env),
        programs=programs or {},
    )


def base(job: Job) -> str:
    """The commit of the site that the run began with."""
    return str(job.json("site_context.json")["site"]["resolved_sha"])


async def _judged(bench: _Bench, scratch: Path) -> Mapping[str, Any]:
    job = bench.job
    env = job.settings.get("git_env", {})
    before = await worktree_hash(job.site, base(job), env)
    programs = {name: tool.path for name, tool in bench.tools.items()}
    site = await survey(job, bench.profile, scratch, programs)
    verdicts = [await _one(bench, gate, site, done) for done, gate in enumerate(bench.gates)]
    after = await worktree_hash(job.site, base(job), env)
    edited = worktree.edited(site)
    job.event("GATE_RUN_STARTED", gate="worktree", profile=bench.level)
    began = time.monotonic()
    said = worktree.check(site, edited, moved=before != after)
    verdicts.append(settle("worktree", said, site, strict=strict(job.config)))
    _finished(job, verdicts[-1], began)
    issues = sorted(
        (issue for verdict in verdicts for issue in verdict.issues),
        key=lambda issue: issue.sort_key,
    )
    for verdict in verdicts:
        job.write(f"logs/gate_{verdict.name}.log", verdict.log)
    job.write("truth_lock_report.json", truth_report.report(site, issues))
    report = _report(bench, verdicts, issues, edited)
    job.write("validation_report.json", report)
    return {
        "ok": report["ok"],
        "worktree_sha256": after,
        "blockers": _count(issues, "blocker"),
        "errors": _count(issues, "error"),
        "warnings": _count(issues, "warn"),
        "gates": {each.name: each.ok for each in verdicts},
    }


async def _one(bench: _Bench, gate: Gate, site: Site, done: int) -> Verdict:
    job = bench.job
    job.tell(f"Gate {gate.name}", done, len(bench.gates))
    job.event("GATE_RUN_STARTED", gate=gate.name, profile=bench.level)
    began = time.monotonic()
    verdict = await judge(gate, site, strict=strict(job.config))
    _finished(job, verdict, began)
    return verdict


def _finished(job: Job, verdict: Verdict, began: float) -> None:
    job.event(
        "GATE_RUN_FINISHED",
        gate=verdict.name,
        ok=verdict.ok,
        issues=len(verdict.issues),
        duration_ms=round((time.monotonic() - began) * 1000),
    )


def _report(
    bench: _Bench, verdicts: Sequence[Verdict], issues: Sequence[Issue], edited: Sequence[str]
) -> dict[str, Any]:
    report: dict[str, Any] = {
        "schema_version": "1.0",
        "ok": all(verdict.ok for verdict in verdicts),
        "profile": bench.level,
        "gates": [
            {"name": each.name, "ok": each.ok, "log_path": f"logs/gate_{each.name}.log"}
            for each in verdicts
        ],
        "issues": [issue.as_json() for issue in issues],
        "manual_edits": bool(edited),
        "toolchain": {name: tool.version for name, tool in sorted(bench.tools.items())},
    }
    if edited:
        report["manual_edited_files"] = list(edited)
    return report


def _count(issues: Sequence[Issue], severity: str) -> int:
    return sum(issue.severity == severity for issue in issues)


async def _tools(job: Job, gates: Sequence[Gate], level: str) -> dict[str, toolchain.Tool]:
    wanted = {tool for gate in gates for tool in gate.tools}
    found = await toolchain.find(wanted, job.settings)
    usable = {name: tool for name, tool in found.items() if not tool.too_old}
    lacking = sorted(wanted - usable.keys())
    if lacking and level != "local":
        raise ToolError(
            ErrorCode.TOOLCHAIN_MISSING,
            f"The profile {level!r} needs {' and '.join(lacking)}.",
            hint="; ".join(toolchain.REMEDIES[name] for name in lacking),
            details={
                "missing": lacking,
                "too_old": {n: t.version for n, t in sorted(found.items()) if t.too_old},
            },
        )
    return usable
