"""One fix attempt (W8): the worst issue that a rule knows, and the patches that repair it.

Nothing is changed here: the patches are applied by the next step and judged by the one after. A
rule that finds nothing to do still uses up the attempt, and its issue is not tried again.
"""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.fixes import restore
from cleats.toolsets.launch.fixes.delta import patches
from cleats.toolsets.launch.fixes.model import Answer, Case, Gone
from cleats.toolsets.launch.fixes.selection import select, siblings, tried
from cleats.toolsets.launch.fixes.table import CODES, RULES
from cleats.toolsets.launch.gates.secrets import secrets
from cleats.toolsets.launch.gates.site import Site
from cleats.toolsets.launch.gates.worktree import edited
from cleats.toolsets.launch.issues import Issue
from cleats.toolsets.launch.patching.fence import Fence
from cleats.toolsets.launch.patching.patches import Patch, bundle
from cleats.toolsets.launch.profiles.model import load
from cleats.toolsets.launch.workers.job import Job
from cleats.toolsets.launch.workers.validate import base, survey


async def run(job: Job) -> Mapping[str, Any]:
    """Plan the repair of one issue; write the patches and a report.

    Raises:
        ToolError: FIX_EXHAUSTED, when no rule is left for what is open.
    """
    report = job.json("validation_report.json")
    fence = Fence(job.site, job.config["allowed_paths"])
    issue = select(report, tried(job.facts) | _out_of_reach(report, fence), CODES)
    if issue is None:
        raise ToolError(
            ErrorCode.FIX_EXHAUSTED,
            "No open issue has a rule that was not tried.",
            hint="Fix the rest by hand, with allow_manual_edits, or change the run.",
            details={"reason": "no_fixable_issue"},
        )
    profile = load(job.config["profile"], [Path(each) for each in job.settings.get("profiles", ())])
    site = await survey(job, profile, job.root / "work" / "scratch")
    before = _text(fence, issue.path)
    rule, answer = await _answer(site, report, issue, before)
    made = patches(issue.path, before, answer)
    number = job.step.rsplit(":", 1)[-1]
    job.write(f"patch_bundle.delta.{number}.json", bundle(made))
    job.write(f"reports/fix_{number}.md", _told(issue, rule, before, answer, made))
    return {
        "issue_id": issue.issue_id,
        "error_code": issue.error_code,
        "rule": rule,
        "path": issue.path,
        "patch_ids": [patch["patch_id"] for patch in made],
    }


def _out_of_reach(report: Mapping[str, Any], fence: Fence) -> frozenset[str]:
    """The issues in files that no rule may touch: not ours to write, or not text.

    They are left to people: a stray file must not end the run.
    """
    closed = set()
    for issue in map(Issue.of, report["issues"]):
        try:
            _text(fence, issue.path)
        except (ToolError, UnicodeDecodeError):
            closed.add(issue.issue_id)
    return frozenset(closed)


def _text(fence: Fence, path: str) -> str | None:
    data = fence.read(path)
    return None if data is None else data.decode()


async def _answer(
    site: Site, report: Mapping[str, Any], issue: Issue, before: str | None
) -> tuple[str, Answer]:
    """The rule that was used, and what it says.

    In a run that allows no edits by hand, a file that was edited first becomes the run's own
    again: a repair on top of the edit would let the rest of it pass.
    """
    job = site.job
    if not job.config.get("allow_manual_edits", False) and issue.path in edited(site):
        env = job.settings.get("git_env", {})
        return restore.CODE, await restore.restored(site, issue.path, base(job), env)
    if issue.error_code not in RULES:
        return issue.error_code, None
    case = Case(site, issue, siblings(report, issue), before)
    return issue.error_code, RULES[issue.error_code](case)


def _told(issue: Issue, rule: str, before: str | None, answer: Answer, made: list[Patch]) -> str:
    """The report: what was wrong, what was done, and the difference, so that nothing is lost."""
    place = f"{issue.path}:{issue.line}" if issue.line else issue.path
    lines = [
        f"# Fix of {issue.issue_id}",
        "",
        f"- Gate: {issue.gate}",
        f"- Code: {issue.error_code}",
        f"- Place: {place}",
        f"- Message: {issue.message}",
        f"- Rule: {rule}",
        "",
    ]
    if not made:
        return "\n".join([*lines, "The rule found nothing that it could change.", ""])
    after = "" if isinstance(answer, Gone) or answer is None else answer
    difference = difflib.unified_diff(
        (before or "").splitlines(), after.splitlines(), "before", "after", lineterm="", n=2
    )
    shown = ("(a line with a secret)" if secrets(line) else line for line in difference)
    return "\n".join([*lines, "````diff", *shown, "````", ""])
