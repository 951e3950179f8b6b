"""The worker that validates a worktree (W7): every gate of the profile, one report, and the change as an archive.

The report contains no times or paths of the machine, so the same worktree and artifacts give the same bytes.

The archive is for people who want to look at the change or apply it elsewhere: a ZIP file with `changes.patch`, which
`git apply` takes, and with every changed file below `files/`. The same change gives the same bytes on every machine:
the entries are sorted, have no time of their own, and are stored uncompressed, because compressors differ.
"""

import difflib
import io
import os
import re
import shutil
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from cleats.toolsets.launch.gates import registry, truth_lock, worktree
from cleats.toolsets.launch.gates.model import Gate
from cleats.toolsets.launch.gates.registry import GateVerdict, build_verdict, run_gate
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.gates.worktree import list_changes
from cleats.toolsets.launch.git.client import HardenedGit
from cleats.toolsets.launch.patching.path_guard import hash_worktree, list_changed_paths
from cleats.toolsets.launch.profiles.model import Profile, load_named_profile
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.site.programs import InstalledProgram

CHANGE_ARCHIVE_NAME: Final = "reports/changes.zip"
PATCH_ENTRY_NAME: Final = "changes.patch"
FILES_ENTRY_PREFIX: Final = "files/"

MAX_ARCHIVED_FILE_BYTES: Final = 8 << 20
"""A larger file is not archived; a page has at most half a megabyte, and a run keeps every archive."""

_LINE_PATTERN: Final = re.compile(r"[^\n]*\n|[^\n]+")
"""A line; only a line feed ends one."""

_ENTRY_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""The first date that a ZIP file can express."""


async def build_change_archive(worktree: Path, base: str, env: Mapping[str, str]) -> bytes:
    """Return the archive of everything in a worktree that differs from the base commit.

    Links and other special files, which no gate lets pass, are left out.

    Raises:
        ToolError: The worktree is not a checkout of the base commit.
    """
    git = HardenedGit(env, worktree)
    paths = await list_changed_paths(worktree, base, env)
    listing = await git.run("", "ls-tree", "-r", "-z", base, "--", *paths) if paths else b""
    kinds = {os.fsdecode(path): kind for kind, _, path in (line.partition(b"\t") for line in listing.split(b"\0"))}
    entries: dict[str, bytes] = {}
    patch_lines: list[str] = []
    for path in paths:
        file = worktree / path
        after = _read_file(file)
        if (after is None and (file.exists() or file.is_symlink())) or b" blob " not in kinds.get(path, b" blob "):
            continue
        before = await git.run("", "cat-file", "blob", f"{base}:{path}") if path in kinds else None
        patch_lines += _format_file_patch(path, before, after)
        if after is not None:
            entries[FILES_ENTRY_PREFIX + path] = after
    return _pack_entries({PATCH_ENTRY_NAME: "".join(patch_lines).encode(), **entries})


def _read_file(file: Path) -> bytes | None:
    is_plain = file.is_file() and not file.is_symlink() and file.stat().st_size <= MAX_ARCHIVED_FILE_BYTES
    return file.read_bytes() if is_plain else None


def _format_file_patch(path: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    """Yield the difference of one file as git writes it."""
    yield f"diff --git a/{path} b/{path}\n"
    if before is None:
        yield "new file mode 100644\n"
    if after is None:
        yield "deleted file mode 100644\n"
    try:
        old_lines, new_lines = (_LINE_PATTERN.findall((data or b"").decode()) for data in (before, after))
    except UnicodeDecodeError:
        yield f"Binary files a/{path} and b/{path} differ\n"
        return
    old_name = "/dev/null" if before is None else f"a/{path}"
    new_name = "/dev/null" if after is None else f"b/{path}"
    for line in difflib.unified_diff(old_lines, new_lines, old_name, new_name):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _pack_entries(entries: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in sorted(entries.items()):
            entry = zipfile.ZipInfo(name, _ENTRY_DATE)
            entry.create_system = 3  # Unix, also where Python would write another
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return buffer.getvalue()


def read_archived_patch(archive: bytes) -> bytes:
    """Return the patch of a change archive."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return opened.read(PATCH_ENTRY_NAME)


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
