"""A worker for every kind of step, small enough to be understood at a glance.

The site is one page. `plan` names it, `apply` writes it, `validate` finds every word BAD1, BAD2 …
in it, `fix` takes away the first that it has a rule for (BAD9 has none, that for BAD7 leaves
WORSE behind, which a second gate finds). `config["test"]` says what goes wrong:

    block    {step: path}: at the first attempt make `path`, and wait until it is gone
    raise    {step: {times, code, retryable, details, leaves}}: fail so often, then work
    crash    {step: anything}: raise what no worker should
    errno    {step: number}: fail once as the system does with this number
    kill     {step: anything}: die
    page     the text of the page
    picture  the bytes of a picture beside it, in hexadecimal
    where    the place of every issue, instead of the page
    edited   the files that somebody edited by hand, as every report has them
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
from cleats.toolsets.launch.issues import Issue
from cleats.toolsets.launch.workers.job import Job

PAGE = "content/docs/index.md"


async def run(job: Job) -> Mapping[str, Any]:
    """Do as the step and the test say."""
    plan = job.config.get("test", {})
    with (job.root / "ran.log").open("a") as log:
        log.write(f"{job.step} {job.attempt} {os.getpid()}\n")
    print("a stray print must not hurt")  # noqa: T201 - that is the point
    job.tell(f"at {job.step}", 1, 2)
    _trouble(job, plan)
    name = job.step.partition(":")[0]
    made: Mapping[str, Any] = STEPS[name](job, plan)
    os.write(1, b"nor one below it, without an end")
    return made


def _trouble(job: Job, plan: Mapping[str, Any]) -> None:
    if (fault := plan.get("raise", {}).get(job.step)) and job.attempt <= fault.get("times", 99):
        for name, document in fault.get("leaves", {}).items():
            job.leave(name, document)
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


def _clone(job: Job, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    job.repo.mkdir(parents=True, exist_ok=True)
    (job.site / PAGE).parent.mkdir(parents=True, exist_ok=True)
    job.write("resolved_refs.txt", "a b\n")
    return {"repo_sha": "a" * 40, "site_sha": "b" * 40}


def _plan(job: Job, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    pages = [{"output_path": PAGE, "section": "docs"}]
    job.write("page_plan.json", json.dumps({"pages": pages}))
    return {}


def _draft(job: Job, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    job.write(f"drafts/{job.scope}/index.md", str(plan.get("page", "Good.\n")))
    if "picture" in plan:
        job.write(f"drafts/{job.scope}/picture.png", bytes.fromhex(plan["picture"]))
    return {}


def _link(job: Job, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    job.write("bundle.txt", job.read("drafts/docs/index.md"))
    return {}


def _apply(job: Job, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    source = f"delta.{job.scope[4:]}.txt" if job.scope.startswith("fix:") else "bundle.txt"
    (job.site / PAGE).write_bytes(job.read(source))
    return {}


def _validate(job: Job, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    text = (job.site / PAGE).read_text()
    found = re.findall(r"BAD\d|WORSE\d?", text)
    job.event("GATE_RUN_STARTED", gate="words")
    issues = [
        Issue.make(
            gate="words" if word.startswith("BAD") else "style",
            severity="blocker",
            message=word,
            error_code="GATE_WORDS",
            path=plan.get("where", PAGE),
        ).as_json()
        for word in found
    ]
    job.event("GATE_RUN_FINISHED", gate="words", ok=not issues)
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


def _fix(job: Job, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    tried = {
        fact["issue_id"] for step, fact in job.facts.items() if step.partition(":")[0] == "fix"
    }
    left = [
        each
        for each in json.loads(job.read("validation_report.json"))["issues"]
        if each["issue_id"] not in tried and each["message"] != "BAD9"
    ]
    if not left:
        raise ToolError(ErrorCode.FIX_EXHAUSTED, "no rule", details={"reason": "no_fixable_issue"})
    word, issue_id = left[0]["message"], left[0]["issue_id"]
    if word == "BAD8":  # a rule that does not find what it needs
        return {"issue_id": issue_id, "patch_ids": []}
    text = (job.site / PAGE).read_text().replace(word, "WORSE" if word == "BAD7" else "")
    job.write(f"delta.{job.scope}.txt", text)
    return {"issue_id": issue_id, "patch_ids": [f"patch_{word}"]}


def _commit(job: Job, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    # A remote that makes one commit for a branch, however often it is asked.
    remote = Path(plan.get("remote", job.root / "remote.txt"))
    branch = f"launch/{job.run_id}/x"
    known = remote.read_text() if remote.exists() else ""
    if branch not in known:
        with remote.open("a") as log:
            log.write(f"{branch}\n")
    return {"branch": branch, "commit_sha": "c" * 40}


def _request(job: Job, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"pr_url": f"local:{job.run_id}", **job.facts["commit"]}


def _nothing(_job: Job, _plan: Mapping[str, Any]) -> Mapping[str, Any]:
    sys.stderr.write("nothing to do\n")
    return {}


STEPS = {
    "clone": _clone,
    "inventory": _nothing,
    "facts": _nothing,
    "snippets": _nothing,
    "plan": _plan,
    "draft": _draft,
    "link": _link,
    "apply": _apply,
    "validate": _validate,
    "fix": _fix,
    "commit": _commit,
    "request": _request,
}
