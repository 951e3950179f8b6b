"""The `cleats launch` command: start runs, follow them, decide about them."""

import sys
from collections.abc import Callable, Coroutine
from typing import Any

import click

from cleats.cli.launch.calls import LaunchClient, call_launch_tool, exit_with_failure, run_with_client
from cleats.cli.launch.clean import clean
from cleats.cli.launch.profiles import profiles
from cleats.cli.launch.start import drive_run, exit_code, print_status, read_status, start, watch_run
from cleats.cli.launch.view import build_run_rows as table
from cleats.cli.launch.view import suggest_next_step
from cleats.cli.output import echo_json, format_columns, format_count, style_heading
from cleats.settings import Settings
from cleats.toolsets.launch.runs.states import RunState

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
_run_id_argument = click.argument("run_id")


@click.group()
def launch() -> None:
    """Write the pages of a product from its repository, check them, open the pull request.

    A run is kept in your data folder and belongs to nobody: it can be started here, followed in
    another terminal and finished by an agent. Ctrl-C leaves it at its last recorded step.

    \b
    Examples:
      cleats launch start run.yaml
      cleats launch start --repo-url https://github.com/owner/aspose-3d-foss-python
      cleats launch watch RUN_ID
      cleats launch fix RUN_ID && cleats launch open-pr RUN_ID

    \b
    Every command that is about a run exits
      0  when the run is ready, done, or at its next boundary,
      1  when the tool or the run failed, or the run was cancelled,
      2  when it was asked wrongly: no such run, a configuration that does not fit,
      3  when the run waits for a decision, because validation found something,
      130  when Ctrl-C stopped it.
    """  # noqa: D301 - click reads the backspace


launch.add_command(start)
launch.add_command(profiles)
launch.add_command(clean)


@launch.command()
@_run_id_argument
@_json_option
@click.pass_obj
def status(settings: Settings, run_id: str, *, as_json: bool) -> None:  # noqa: ARG001 - read by show
    """Say where a run is, what is wrong and what can be done next.

    \b
    Examples:
      cleats launch status RUN_ID
      cleats launch status RUN_ID --json | jq .status.state
    """  # noqa: D301 - click reads the backspace
    answer, is_driven = run_with_client(settings, lambda client: read_status(client, run_id))
    print_status(answer, is_driven=is_driven) if answer["ok"] else exit_with_failure(answer)


@launch.command("list")
@click.option("--product", help="Only runs of this product.")
@click.option(
    "--state",
    type=click.Choice([each.value for each in RunState], case_sensitive=False),
    metavar="STATE",
    help="Only runs in this state, such as READY_FOR_PR.",
)
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@_json_option
@click.pass_obj
def list_runs(settings: Settings, *, product: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """List runs, the newest first.

    \b
    Examples:
      cleats launch list
      cleats launch list --state ready_for_pr --limit 5
    """  # noqa: D301 - click reads the backspace
    filters = {"product_slug": product, "state": state}
    active_filters = {name: value for name, value in filters.items() if value is not None}
    answer = call_launch_tool(settings, "list_runs", filter=active_filters, limit=limit)
    if as_json:
        echo_json(answer)
    elif answer["runs"]:
        click.echo(format_columns([("RUN", "PRODUCT", "STATE", "STARTED"), *table(answer["runs"])]))
    else:
        click.echo("There are no such runs." if active_filters else "There are no runs yet.")


@launch.command()
@_run_id_argument
@_json_option
@click.pass_obj
def watch(settings: Settings, run_id: str, *, as_json: bool) -> None:  # noqa: ARG001 - read by show
    """Follow a run until it ends or waits, whoever drives it.

    With --json every event is a line of its own, and the status is what comes last.

    \b
    Examples:
      cleats launch watch RUN_ID
    """  # noqa: D301 - click reads the backspace
    answer = run_with_client(settings, lambda client: watch_run(client, run_id))
    print_status(answer) if answer["ok"] else exit_with_failure(answer)


@launch.command()
@_run_id_argument
@_json_option
@click.pass_obj
def resume(settings: Settings, run_id: str, *, as_json: bool) -> None:  # noqa: ARG001 - as above
    """Go on with a run, here and now, until it may rest.

    \b
    Examples:
      cleats launch resume RUN_ID
    """  # noqa: D301 - click reads the backspace
    answer = run_with_client(settings, lambda client: drive_run(client, "resume", run_id))
    print_status(answer) if answer["ok"] else exit_with_failure(answer)


@launch.command()
@_run_id_argument
@_json_option
@click.pass_obj
def validate(settings: Settings, run_id: str, *, as_json: bool) -> None:
    """Run the gates on a run as it is now, and say what they find.

    Its worktree may have been edited by hand: it is `work/site` in the folder of the run.

    \b
    Examples:
      cleats launch validate RUN_ID
    """  # noqa: D301 - click reads the backspace
    _run_and_report(settings, run_id, lambda client: drive_run(client, "validate", run_id), as_json=as_json)


_NOTHING_LEFT_CODES = ("FIX_EXHAUSTED", "ILLEGAL_STATE")
"""The error codes that end `fix --all`: no rule or attempt is left, or a fix ended the run."""


@launch.command()
@_run_id_argument
@click.option("--all", "every", is_flag=True, help="Go on until nothing is left that has a rule.")
@_json_option
@click.pass_obj
def fix(settings: Settings, run_id: str, *, every: bool, as_json: bool) -> None:
    """Fix the worst issue that a rule can fix, and validate again.

    \b
    Examples:
      cleats launch fix RUN_ID
      cleats launch fix RUN_ID --all
    """  # noqa: D301 - click reads the backspace

    async def fix_issues(client: LaunchClient) -> dict[str, Any]:
        answer = await drive_run(client, "fix_next", run_id)
        while every and answer["ok"] and not answer["validation_report"]["ok"]:
            last_answer, answer = answer, await drive_run(client, "fix_next", run_id)
            if not answer["ok"] and answer["error"]["code"] in _NOTHING_LEFT_CODES:
                return last_answer
        return answer

    _run_and_report(settings, run_id, fix_issues, as_json=as_json)


@launch.command()
@_run_id_argument
@_json_option
@click.pass_obj
def cancel(settings: Settings, run_id: str, *, as_json: bool) -> None:
    """End a run for good, wherever it is driven. Its artifacts can still be read.

    \b
    Examples:
      cleats launch cancel RUN_ID
    """  # noqa: D301 - click reads the backspace
    answer = call_launch_tool(settings, "cancel", run_id=run_id)
    echo_json(answer) if as_json else click.echo(f"{run_id} is cancelled.")


@launch.command("open-pr")
@_run_id_argument
@_json_option
@click.pass_obj
def open_pr(settings: Settings, run_id: str, *, as_json: bool) -> None:
    """Commit the pages of a run to a branch and open the request.

    \b
    Examples:
      cleats launch open-pr RUN_ID
    """  # noqa: D301 - click reads the backspace
    answer = run_with_client(settings, lambda client: drive_run(client, "open_pr", run_id))
    if not answer["ok"]:
        exit_with_failure(answer)
    if as_json:
        echo_json(answer)
    else:
        names = ("pr_url", "branch", "commit_sha")
        click.echo(format_columns([(name, answer[name]) for name in names]))


@launch.command()
@_run_id_argument
@click.argument("name", required=False)
@click.option("-o", "--output", type=click.File("wb"), help="Write the bytes to this file.")
@_json_option
@click.pass_obj
def artifact(settings: Settings, run_id: str, name: str | None, *, output: Any, as_json: bool) -> None:
    """Print an artifact of a run, or the names of all.

    \b
    Examples:
      cleats launch artifact RUN_ID
      cleats launch artifact RUN_ID validation_report.json
    """  # noqa: D301 - click reads the backspace
    if name is None:
        artifacts = call_launch_tool(settings, "get_status", run_id=run_id)["status"]["artifacts"]
        rows = [(listed_artifact["sha256"][:12], listed_artifact["name"]) for listed_artifact in artifacts]
        echo_json(artifacts) if as_json else click.echo(format_columns(rows) if rows else "None yet.")
        return
    answer = call_launch_tool(settings, "get_artifact", run_id=run_id, artifact_name=name)
    if as_json:
        echo_json(answer)
        return
    target = output or sys.stdout.buffer
    target.write(_decode_artifact(answer["artifact"]))


def _decode_artifact(artifact_data: dict[str, str]) -> bytes:
    from base64 import b64decode  # noqa: PLC0415 - rarely needed

    if artifact_data["content_type"].endswith(";base64"):
        return b64decode(artifact_data["content"])
    return artifact_data["content"].encode()


def _run_and_report(
    settings: Settings,
    run_id: str,
    work: Callable[[LaunchClient], Coroutine[Any, Any, dict[str, Any]]],
    *,
    as_json: bool,
) -> None:
    """Run a tool that returns a validation report, print the report and the next step, and exit."""

    async def run_with_status(client: LaunchClient) -> tuple[dict[str, Any], dict[str, Any]]:
        answer = await work(client)
        return answer, await client.call("get_status", run_id=run_id) if answer["ok"] else answer

    answer, status_answer = run_with_client(settings, run_with_status)
    if not answer["ok"]:
        exit_with_failure(answer)
    _print_verdict(answer, status_answer, as_json=as_json)


def _print_verdict(answer: dict[str, Any], status_answer: dict[str, Any], *, as_json: bool) -> None:
    report = answer["validation_report"]
    has_failed = status_answer["ok"] and status_answer["status"]["state"] == "FAILED"
    if as_json:
        echo_json(answer)
    else:
        if answer.get("fixed_issue_id"):
            click.echo(f"Fixed {answer['fixed_issue_id']}.")
        failed_gates = [gate["name"] for gate in report["gates"] if not gate["ok"]]
        passed_count = len(report["gates"]) - len(failed_gates)
        click.echo(f"{format_count(passed_count, 'gate')} passed, {len(failed_gates)} failed.")
        issues = [
            (issue["severity"], issue["gate"], _format_location(issue) + issue["message"]) for issue in report["issues"]
        ]
        if issues:
            click.echo(style_heading(format_count(len(issues), "issue")))
            click.echo(format_columns(issues))
        for line in suggest_next_step(status_answer["status"]) if status_answer["ok"] else ():
            click.echo(line)
        if has_failed:
            click.echo("The run has failed.")
    verdict = "READY_FOR_PR" if report["ok"] else "VALIDATING"
    sys.exit(exit_code("FAILED" if has_failed else verdict))


def _format_location(issue: dict[str, Any]) -> str:
    location = issue.get("location", {})
    line = f":{location['line']}" if location.get("line") else ""
    return f"{location['path']}{line}: " if location else ""
