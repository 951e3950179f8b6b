"""A launch, from a repository to a request for review: what `make demo` shows last.

The sample package and the sample site become git repositories in `build/demo`, where they stay, so
that whoever ran the demo can look around.
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
from stage import BOLD, DIM, GREEN, PLAIN, ok, say, title

HERE = Path(__file__).parent
PLACE = HERE.parent / "build" / "demo"
PAGE = "content/docs/measurekit/installation.md"
BOAST = "- It is the fastest library of its kind.\n"
RESTING = {"VALIDATING", "READY_FOR_PR", "FAILED", "CANCELLED", "DONE"}


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Demo", "-c", "user.email=demo@example.com")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def prepare() -> str:
    """The two repositories, and the commit of the source."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    for name in ("source", "site"):
        shutil.copytree(HERE / "launch" / name, PLACE / name)
        git(PLACE / name, "init", "--quiet", "--initial-branch=main")
        git(PLACE / name, "add", "--all")
        git(PLACE / name, "commit", "--quiet", "--message", "The sample")
    git(PLACE, "clone", "--quiet", "--bare", "site", "site.git")
    return git(PLACE / "source", "rev-parse", "HEAD")


class Run:
    """The tools of launch, for one run."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.id = ""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        given = {"run_id": self.id, **arguments} if self.id else arguments
        answer = (await self.client.call_tool(tool, given)).structured_content
        assert isinstance(answer, dict)
        assert answer["ok"], answer
        return answer

    async def rest(self) -> dict[str, Any]:
        """Follow the run until it needs somebody."""
        seen: list[str] = []
        while True:
            status = (await self.call("launch_get_status"))["status"]
            if seen[-1:] != [status["state"]]:
                seen.append(status["state"])
                say(f"   {DIM}{status['state']}{PLAIN}")
            report = any(each["name"] == "validation_report.json" for each in status["artifacts"])
            if status["state"] in RESTING and (report or status["state"] != "VALIDATING"):
                return status
            await anyio.sleep(0.2)


def tell_issues(report: dict[str, Any]) -> None:
    for issue in report["issues"]:
        place = issue.get("location", {})
        where = f"{place.get('path', '')}:{place.get('line', '')}"
        say(f"   {BOLD}{issue['gate']}{PLAIN} {where}\n     {issue['message'].splitlines()[0]}")


async def tour_launch(server: Callable[..., StdioServerParameters], number: int) -> None:
    if shutil.which("git") is None:
        say("\nThe last part, a launch, needs git.")
        return
    commit = prepare()
    os.environ["CLEATS_DATA_DIR"] = str(PLACE / "data")
    async with Client(server("-m", "cleats", "serve", "launch")) as client:
        run = Run(client)
        title(number, "Launch: read a package at a commit, write its pages, check them")
        config = {
            "profile": "plain",
            "family": "measurekit",
            "target_platform": "python",
            "github_repo_url": str(PLACE / "source"),
            "github_ref": commit,
            "site_repo_url": str(PLACE / "site.git"),
            "required_sections": ["docs", "reference"],
            "allow_manual_edits": True,
        }
        run.id = (await run.call("launch_start_run", run_config=config))["run_id"]
        status = await run.rest()
        assert status["state"] == "READY_FOR_PR", status
        ok(f"{len(status['artifacts'])} artifacts; every gate passed, a real Hugo build among them")

        title(number + 1, "Add a claim that nothing supports: the gates see it, a fix removes it")
        page = PLACE / "data" / "launch" / "runs" / run.id / "work" / "site" / PAGE
        text = page.read_text()
        page.write_text(text.replace("## Requirements\n\n", f"## Requirements\n\n{BOAST}"))
        say(f"   {DIM}{PAGE}: {BOAST.strip()}{PLAIN}")
        report = (await run.call("launch_validate"))["validation_report"]
        tell_issues(report)
        while not report["ok"]:
            fixed = await run.call("launch_fix_next")
            report = fixed["validation_report"]
            ok(f"fixed {fixed['fixed_issue_id']}, {fixed['remaining_blockers']} left")

        title(number + 2, "Open the request, on a plain git remote")
        opened = await run.call("launch_open_pr")
        ok(f"{opened['branch']} at {opened['commit_sha'][:12]}")
        show_diff(opened["branch"])


def show_diff(branch: str) -> None:
    remote = PLACE / "site.git"
    for line in git(remote, "diff", "--stat=80", f"main...{branch}").splitlines():
        say(f"   {line.strip()}")
    for line in git(remote, "show", f"{branch}:{PAGE}").splitlines()[:14]:
        say(f"   {GREEN}+{PLAIN} {line}")
    where = remote.relative_to(HERE.parent)
    say(f"\n   Look at all of it: {BOLD}git -C {where} show {branch}{PLAIN}")
