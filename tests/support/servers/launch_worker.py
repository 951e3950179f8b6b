"""A worker for every kind of step, small enough to be understood at a glance.

The site is one page. `plan` names it, `apply` writes it, `validate` finds every word BAD1, BAD2 …
in it, `fix` removes the first one that it has a rule for (BAD9 has none, the rule for BAD7 leaves
WORSE behind, which a second gate finds). `config["test"]` has the faults:

    block    {step: path}: at the first attempt create `path`, and wait until it is gone
    raise    {step: {times, code, retryable, details, leaves}}: fail this often, then work
    crash    {step: anything}: raise an exception that no worker should raise
    errno    {step: number}: fail once with this error number of the system
    kill     {step: anything}: kill the worker
    page     the text of the page
    picture  the bytes of a picture next to it, in hexadecimal
    where    the location of every issue, instead of the page
    edited   the files edited by hand, as every report has them
"""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.runs.issues import Issue
from cleats.toolsets.launch.runs.job import WorkerJob

PAGE_PATH = "content/docs/index.md"


async def run(job: WorkerJob) -> Mapping[str, Any]:
    """Run the step with the faults that the test asks for."""
    plan = job.config.get("test", {})
    with (job.root / "ran.log").open("a") as log:
        log.write(f"{job.step} {job.attempt} {os.getpid()}\n")
    print("a stray print must not hurt")  # noqa: T201 - that is the point
    job.report_progress(f"at {job.step}", 1, 2)
    _raise_trouble(job, plan)
    name = job.step.partition(":")[0]
    output: Mapping[str, Any] = STEP_FUNCTIONS[name](job, plan)
    os.write(1, b"nor one below it, without an end")
    return output


def _raise_trouble(job: WorkerJob, plan: Mapping[str, Any]) -> None:
    if (fault := plan.get("raise", {}).get(job.step)) and job.attempt <= fault.get("times", 99):
        for name, document in fault.get("leaves", {}).items():
            job.write_on_failure(name, document)
        job.write("half.txt", "Half of it.")
        raise ToolError(
            ErrorCode[fault["code"]],
            f"{job.step} fails in {job.root}/work",
            retryable=fault.get("retryable"),
            details=fault.get("details"),
        )
    if job.step in plan.get("crash", {}):
        raise ZeroDivisionError(str(job.root))
    if job.step in plan.get("errno", {}) and job.attempt == 1:
        raise OSError(plan["errno"][job.step], "no", str(job.root))
    if job.step in plan.get("kill", {}) and job.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    gate = plan.get("block", {}).get(job.step)
    if gate is not None and job.attempt == 1:
        Path(gate).write_text(str(os.getpid()))
        while Path(gate).exists():
            time.sleep(0.005)


def _create_worktrees(job: WorkerJob, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    job.repo.mkdir(parents=True, exist_ok=True)
    (job.site / PAGE_PATH).parent.mkdir(parents=True, exist_ok=True)
    job.write("resolved_refs.txt", "a b\n")
    return {"repo_sha": "a" * 40, "site_sha": "b" * 40}


def _write_plan(job: WorkerJob, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    pages = [{"output_path": PAGE_PATH, "section": "docs"}]
    job.write("page_plan.json", json.dumps({"pages": pages}))
    return {}


def _write_draft(job: WorkerJob, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    job.write(f"drafts/{job.scope}/index.md", str(plan.get("page", "Good.\n")))
    if "picture" in plan:
        job.write(f"drafts/{job.scope}/picture.png", bytes.fromhex(plan["picture"]))
    return {}


def _write_bundle(job: WorkerJob, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    job.write("bundle.txt", job.read("drafts/docs/index.md"))
    return {}


def _apply_bundle(job: WorkerJob, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    source = f"delta.{job.scope[4:]}.txt" if job.scope.startswith("fix:") else "bundle.txt"
    (job.site / PAGE_PATH).write_bytes(job.read(source))
    return {}


def _validate_page(job: WorkerJob, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    text = (job.site / PAGE_PATH).read_text()
    bad_words = re.findall(r"BAD\d|WORSE\d?", text)
    job.add_event("GATE_RUN_STARTED", gate="words")
    issues = [
        Issue.create(
            gate="words" if word.startswith("BAD") else "style",
            severity="blocker",
            message=word,
            error_code="GATE_WORDS",
            path=plan.get("where", PAGE_PATH),
        ).as_json()
        for word in bad_words
    ]
    job.add_event("GATE_RUN_FINISHED", gate="words", ok=not issues)
    report = {
        "schema_version": "1.0",
        "ok": not issues,
        "profile": "local",
        "gates": [{"name": "words", "ok": not issues}],
        "issues": issues,
    }
    if "edited" in plan:
        report["manual_edited_files"] = plan["edited"]
    job.write("validation_report.json", json.dumps(report))
    return {"ok": not issues, "worktree_sha256": sha256(text.encode()).hexdigest()}


def _fix_issue(job: WorkerJob, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    tried_issue_ids = {fact["issue_id"] for step, fact in job.facts.items() if step.partition(":")[0] == "fix"}
    open_issues = [
        issue
        for issue in json.loads(job.read("validation_report.json"))["issues"]
        if issue["issue_id"] not in tried_issue_ids and issue["message"] != "BAD9"
    ]
    if not open_issues:
        raise ToolError(ErrorCode.FIX_EXHAUSTED, "no rule", details={"reason": "no_fixable_issue"})
    word, issue_id = open_issues[0]["message"], open_issues[0]["issue_id"]
    if word == "BAD8":  # a rule that does not find what it needs
        return {"issue_id": issue_id, "patch_ids": []}
    text = (job.site / PAGE_PATH).read_text().replace(word, "WORSE" if word == "BAD7" else "")
    job.write(f"delta.{job.scope}.txt", text)
    return {"issue_id": issue_id, "patch_ids": [f"patch_{word}"]}


def _commit_branch(job: WorkerJob, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    # A remote that makes one commit for a branch, however often it is asked.
    remote = Path(plan.get("remote", job.root / "remote.txt"))
    branch = f"launch/{job.run_id}/x"
    known_branches = remote.read_text() if remote.exists() else ""
    if branch not in known_branches:
        with remote.open("a") as log:
            log.write(f"{branch}\n")
    return {"branch": branch, "commit_sha": "c" * 40}


def _open_request(job: WorkerJob, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"pr_url": f"local:{job.run_id}", **job.facts["commit"]}


def _do_nothing(_job: WorkerJob, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    sys.stderr.write("nothing to do\n")
    return {}


STEP_FUNCTIONS = {
    "clone": _create_worktrees,
    "inventory": _do_nothing,
    "facts": _do_nothing,
    "snippets": _do_nothing,
    "plan": _write_plan,
    "draft": _write_draft,
    "link": _write_bundle,
    "apply": _apply_bundle,
    "validate": _validate_page,
    "fix": _fix_issue,
    "commit": _commit_branch,
    "request": _open_request,
}
