"""A launch, from a repository to a branch for review: the last part of `make demo`.

The sample package and the sample site become git repositories in `build/demo`, where they stay for
inspection after the demo.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from stage import BOLD_STYLE, DIM_STYLE, GREEN_STYLE, RESET_STYLE, print_line, print_success, print_title

EXAMPLES_FOLDER = Path(__file__).parent
DEMO_FOLDER = EXAMPLES_FOLDER.parent / "build" / "demo"
PAGE_PATH = "content/docs/measurekit/installation.md"
UNSUPPORTED_CLAIM = "- It is the fastest library of its kind.\n"
RESTING_STATES = {"VALIDATING", "READY_FOR_PR", "FAILED", "CANCELLED", "DONE"}


def run_git(folder: Path, *words: str) -> str:
    identity_options = ("-c", "user.name=Demo", "-c", "user.email=demo@example.com")
    completed = subprocess.run(
        ["git", *identity_options, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return completed.stdout.strip()


def prepare_repositories() -> str:
    """Create the two repositories and return the commit of the source."""
    shutil.rmtree(DEMO_FOLDER, ignore_errors=True)
    DEMO_FOLDER.mkdir(parents=True)
    for name in ("source", "site"):
        shutil.copytree(EXAMPLES_FOLDER / "launch" / name, DEMO_FOLDER / name)
        run_git(DEMO_FOLDER / name, "init", "--quiet", "--initial-branch=main")
        run_git(DEMO_FOLDER / name, "add", "--all")
        run_git(DEMO_FOLDER / name, "commit", "--quiet", "--message", "The sample")
    run_git(DEMO_FOLDER, "clone", "--quiet", "--bare", "site", "site.git")
    return run_git(DEMO_FOLDER / "source", "rev-parse", "HEAD")


class DemoRun:
    """A client of the launch tools for one run."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.id = ""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        tool_arguments = {"run_id": self.id, **arguments} if self.id else arguments
        answer = (await self.client.call_tool(tool, tool_arguments)).structured_content
        assert isinstance(answer, dict)
        assert answer["ok"], answer
        return answer

    async def wait_until_resting(self) -> dict[str, Any]:
        """Follow the run until it needs a decision."""
        states: list[str] = []
        while True:
            status = (await self.call("launch_get_status"))["status"]
            if states[-1:] != [status["state"]]:
                states.append(status["state"])
                print_line(f"   {DIM_STYLE}{status['state']}{RESET_STYLE}")
            has_report = any(artifact["name"] == "validation_report.json" for artifact in status["artifacts"])
            if status["state"] in RESTING_STATES and (has_report or status["state"] != "VALIDATING"):
                return status
            await anyio.sleep(0.2)


def print_issues(report: dict[str, Any]) -> None:
    for issue in report["issues"]:
        location = issue.get("location", {})
        position = f"{location.get('path', '')}:{location.get('line', '')}"
        print_line(f"   {BOLD_STYLE}{issue['gate']}{RESET_STYLE} {position}\n     {issue['message'].splitlines()[0]}")


async def tour_launch(server: Callable[..., StdioServerParameters], number: int) -> None:
    if shutil.which("git") is None:
        print_line("\nThe last part, a launch, needs git.")
        return
    commit = prepare_repositories()
    os.environ["CLEATS_DATA_DIR"] = str(DEMO_FOLDER / "data")
    async with Client(server("-m", "cleats", "serve", "launch")) as client:
        run = DemoRun(client)
        print_title(number, "Launch: read a package at one commit, write its pages and check them: 10 to 60 s")
        config = {
            "profile": "plain",
            "family": "measurekit",
            "target_platform": "python",
            "github_repo_url": str(DEMO_FOLDER / "source"),
            "github_ref": commit,
            "site_repo_url": str(DEMO_FOLDER / "site.git"),
            "required_sections": ["docs", "reference"],
            "allow_manual_edits": True,
        }
        run.id = (await run.call("launch_start_run", run_config=config))["run_id"]
        status = await run.wait_until_resting()
        assert status["state"] == "READY_FOR_PR", status
        print_success(f"{len(status['artifacts'])} artifacts; every gate passed, including a real Hugo build")

        print_title(number + 1, "Add a claim without evidence: a gate reports it, a fix removes it")
        page = DEMO_FOLDER / "data" / "launch" / "runs" / run.id / "work" / "site" / PAGE_PATH
        text = page.read_text()
        page.write_text(text.replace("## Requirements\n\n", f"## Requirements\n\n{UNSUPPORTED_CLAIM}"))
        print_line(f"   {DIM_STYLE}{PAGE_PATH}: {UNSUPPORTED_CLAIM.strip()}{RESET_STYLE}")
        report = (await run.call("launch_validate"))["validation_report"]
        print_issues(report)
        while not report["ok"]:
            fixed = await run.call("launch_fix_next")
            report = fixed["validation_report"]
            print_success(f"fixed {fixed['fixed_issue_id']}, {fixed['remaining_blockers']} left")

        print_title(number + 2, "Publish the pages: a branch on a plain git remote")
        opened = await run.call("launch_open_pr")
        print_success(f"{opened['branch']} at {opened['commit_sha'][:12]}")
        print_diff(opened["branch"])


def print_diff(branch: str) -> None:
    remote = DEMO_FOLDER / "site.git"
    for line in run_git(remote, "diff", "--stat=80", f"main...{branch}").splitlines():
        print_line(f"   {line.strip()}")
    for line in run_git(remote, "show", f"{branch}:{PAGE_PATH}").splitlines()[:14]:
        print_line(f"   {GREEN_STYLE}+{RESET_STYLE} {line}")
    remote_path = remote.relative_to(EXAMPLES_FOLDER.parent)
    print_line(f"\n   To see all of it: {BOLD_STYLE}git -C {remote_path} show {branch}{RESET_STYLE}")
