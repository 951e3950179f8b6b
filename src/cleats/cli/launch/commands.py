"""The `cleats launch` command: start runs, follow them, decide about them."""

import sys
from base64 import b64decode
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import click

from cleats.cli.guesses import GuessingGroup
from cleats.cli.launch.calls import (
    LaunchClient,
    call_launch_tool,
    check_answer,
    run_with_client,
)
from cleats.cli.launch.housekeeping import clean, profiles
from cleats.cli.launch.inspection import diff, explain, last, preview
from cleats.cli.launch.run_argument import RUN, find_last_run, named_run_command, run_command
from cleats.cli.launch.start import drive_run, exit_code, print_status, read_status, start, watch_run
from cleats.cli.launch.view import format_run_table, suggest_next_step
from cleats.cli.output import echo_json, format_columns, format_count, is_json_requested, print_answer, style_heading
from cleats.cli.tool_command import json_command
from cleats.settings import Settings
from cleats.toolsets.launch.runs.states import RunState

_STATE_CHOICE = click.Choice([state.value for state in RunState], case_sensitive=False)


@click.group(cls=GuessingGroup)
def launch() -> None:
    """Turn a repository into documentation pages, check them and open the pull request.

    A run is stored in your data folder. You can start it here, watch it in another terminal and let an agent
    finish it. After Ctrl-C, `cleats launch resume` continues it.

    RUN is the id of a run, the first characters of the id or of its last part, or `last`. Without
    RUN, commands use the last run; `cancel`, `open-pr` and `artifact` need one.

    Examples:
      cleats launch start run.yaml
      cleats launch start --repo-url https://github.com/owner/measurekit-python
      cleats launch watch
      cleats launch fix && cleats launch open-pr last

    Exit codes of commands for a run:
      0  the run is ready, done, or at its next stopping point,
      1  the command or the run failed, or the run was cancelled,
      2  the arguments are invalid: unknown run, invalid configuration,
      3  the run waits for a decision because a gate failed,
      130  Ctrl-C stopped the command.
    """


for _command in (start, last, diff, explain, preview, profiles, clean):
    launch.add_command(_command)


@launch.command()
@run_command
def status(settings: Settings, run_id: str) -> None:
    """Show the state of a run, its issues and the next step.

    Examples:
      cleats launch status
      cleats launch status fe3f --json | jq .status.state
    """
    answer, is_driven = run_with_client(settings, lambda client: read_status(client, run_id))
    print_status(check_answer(answer), is_driven=is_driven)


@launch.command("list")
@click.option("--product", help="Only runs of this product.")
@click.option("--state", type=_STATE_CHOICE, metavar="STATE", help="Only runs in this state, such as READY_FOR_PR.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Number of runs.")
@json_command
def list_runs(settings: Settings, *, product: str | None, state: str | None, limit: int) -> None:
    """List runs, newest first.

    Examples:
      cleats launch list
      cleats launch list --state ready_for_pr --limit 5
    """
    filters = {"product_slug": product, "state": state}
    active_filters = {name: value for name, value in filters.items() if value is not None}
    answer = call_launch_tool(settings, "list_runs", filter=active_filters, limit=limit)
    empty_text = "No runs match the filters." if active_filters else "No runs yet."
    print_answer(answer, lambda answer: format_run_table(answer["runs"]) or empty_text)


@launch.command()
@run_command
def watch(settings: Settings, run_id: str) -> None:
    """Follow a run until it ends or waits for a decision.

    With --json, each event is one line, and the last line is the status.

    Examples:
      cleats launch watch
      cleats launch watch fe3f
    """
    print_status(check_answer(run_with_client(settings, lambda client: watch_run(client, run_id))))


@launch.command()
@run_command
def resume(settings: Settings, run_id: str) -> None:
    """Resume a run and follow it to its next stopping point.

    Examples:
      cleats launch resume
      cleats launch resume fe3f
    """
    print_status(check_answer(run_with_client(settings, lambda client: drive_run(client, "resume", run_id))))


@launch.command()
@run_command
def validate(settings: Settings, run_id: str) -> None:
    """Run the gates on the pages of a run and list the issues.

    `cleats launch status` prints the folder of the pages; you may edit them first.

    Examples:
      cleats launch validate
      cleats launch validate fe3f
    """
    _run_and_report(settings, run_id, lambda client: drive_run(client, "validate", run_id))


_NOTHING_LEFT_CODES = ("FIX_EXHAUSTED", "ILLEGAL_STATE")
"""The error codes that end `fix --all`: no rule or attempt is left, or a fix ended the run."""


@launch.command()
@click.argument("run_id", metavar="[RUN]", type=RUN, required=False)
@click.option("--all", "every", is_flag=True, help="Repeat until no fixable issue is left.")
@json_command
def fix(settings: Settings, run_id: str | None, *, every: bool) -> None:
    """Fix the most severe fixable issue and validate again.

    Examples:
      cleats launch fix
      cleats launch fix fe3f --all
    """
    selected_id = run_id or find_last_run(settings)

    async def fix_issues(client: LaunchClient) -> dict[str, Any]:
        answer = await drive_run(client, "fix_next", selected_id)
        while every and answer["ok"] and not answer["validation_report"]["ok"]:
            last_answer, answer = answer, await drive_run(client, "fix_next", selected_id)
            if not answer["ok"] and answer["error"]["code"] in _NOTHING_LEFT_CODES:
                return last_answer
        return answer

    _run_and_report(settings, selected_id, fix_issues)


@launch.command()
@named_run_command
def cancel(settings: Settings, run_id: str) -> None:
    """Cancel a run permanently. Its artifacts remain.

    Examples:
      cleats launch cancel last
      cleats launch cancel fe3f
    """
    print_answer(call_launch_tool(settings, "cancel", run_id=run_id), lambda _answer: f"{run_id} is cancelled.")


@launch.command("open-pr")
@named_run_command
def open_pr(settings: Settings, run_id: str) -> None:
    """Commit the pages of a run to a branch and open the pull request.

    Examples:
      cleats launch open-pr last
      cleats launch open-pr fe3f
    """
    answer = check_answer(run_with_client(settings, lambda client: drive_run(client, "open_pr", run_id)))
    names = ("pr_url", "branch", "commit_sha")
    print_answer(answer, lambda answer: format_columns([(name, answer[name]) for name in names]))


@launch.command()
@click.argument("run_id", metavar="RUN", type=RUN)
@click.argument("name", required=False)
@click.option("-o", "--output", type=click.File("wb"), help="Write the bytes to this file.")
@json_command
def artifact(settings: Settings, run_id: str, name: str | None, *, output: Any) -> None:
    """Print an artifact of a run, or list all artifacts.

    Examples:
      cleats launch artifact last
      cleats launch artifact fe3f validation_report.json
    """
    if name is None:
        artifacts = call_launch_tool(settings, "get_status", run_id=run_id)["status"]["artifacts"]
        rows = [(item["sha256"][:12], item["name"]) for item in artifacts]
        print_answer(artifacts, lambda _artifacts: format_columns(rows) if rows else "None yet.")
        return
    answer = call_launch_tool(settings, "get_artifact", run_id=run_id, artifact_name=name)
    if is_json_requested():
        echo_json(answer)
    else:
        content, is_base64 = answer["artifact"]["content"], answer["artifact"]["content_type"].endswith(";base64")
        (output or sys.stdout.buffer).write(b64decode(content) if is_base64 else content.encode())


def _run_and_report(
    settings: Settings, run_id: str, work: Callable[[LaunchClient], Coroutine[Any, Any, dict[str, Any]]]
) -> None:

    async def run_with_status(client: LaunchClient) -> tuple[dict[str, Any], dict[str, Any]]:
        answer = await work(client)
        return answer, await client.call("get_status", run_id=run_id) if answer["ok"] else answer

    answer, status_answer = run_with_client(settings, run_with_status)
    run_status = status_answer.get("status", {})
    print_answer(check_answer(answer), lambda answer: _render_verdict(answer, run_status))
    verdict = "READY_FOR_PR" if answer["validation_report"]["ok"] else "VALIDATING"
    sys.exit(exit_code("FAILED" if run_status.get("state") == "FAILED" else verdict))


def _render_verdict(answer: dict[str, Any], run_status: dict[str, Any]) -> Iterator[str]:
    report = answer["validation_report"]
    if answer.get("fixed_issue_id"):
        yield f"Fixed {answer['fixed_issue_id']}."
    failed_count = sum(not gate["ok"] for gate in report["gates"])
    yield f"{format_count(len(report['gates']) - failed_count, 'gate')} passed, {failed_count} failed."
    if issues := report["issues"]:
        yield style_heading(format_count(len(issues), "issue"))
        yield format_columns([(issue["severity"], issue["gate"], _format_issue(issue)) for issue in issues])
    if run_status:
        yield from suggest_next_step(run_status)
    if run_status.get("state") == "FAILED":
        yield "The run has failed."


def _format_issue(issue: dict[str, Any]) -> str:
    if not (location := issue.get("location", {})):
        return str(issue["message"])
    line = f":{location['line']}" if location.get("line") else ""
    return f"{location['path']}{line}: {issue['message']}"
