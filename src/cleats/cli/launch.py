"""`cleats launch`: start runs, follow them, decide about them."""

import sys
from collections.abc import Callable, Coroutine
from typing import Any

import click

from cleats.cli.launch_calls import Desk, asked, fail, run
from cleats.cli.launch_clean import clean
from cleats.cli.launch_drive import exit_code, looked_at, moved, show, watched
from cleats.cli.launch_profiles import profiles
from cleats.cli.launch_start import start
from cleats.cli.launch_view import after
from cleats.cli.launch_view import rows as table
from cleats.cli.printing import columns, counted, echo_json, heading
from cleats.settings import Settings
from cleats.toolsets.launch.states import State

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
_run_id = click.argument("run_id")


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
@_run_id
@_json
@click.pass_obj
def status(settings: Settings, run_id: str, *, as_json: bool) -> None:  # noqa: ARG001 - read by show
    """Say where a run is, what is wrong and what can be done next.

    \b
    Examples:
      cleats launch status RUN_ID
      cleats launch status RUN_ID --json | jq .status.state
    """  # noqa: D301 - click reads the backspace
    answer, driven = run(settings, lambda desk: looked_at(desk, run_id))
    show(answer, driven=driven) if answer["ok"] else fail(answer)


@launch.command("list")
@click.option("--product", help="Only runs of this product.")
@click.option(
    "--state",
    type=click.Choice([each.value for each in State], case_sensitive=False),
    metavar="STATE",
    help="Only runs in this state, such as READY_FOR_PR.",
)
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@_json
@click.pass_obj
def list_runs(
    settings: Settings, *, product: str | None, state: str | None, limit: int, as_json: bool
) -> None:
    """List runs, the newest first.

    \b
    Examples:
      cleats launch list
      cleats launch list --state ready_for_pr --limit 5
    """  # noqa: D301 - click reads the backspace
    wanted = {"product_slug": product, "state": state}
    chosen = {name: value for name, value in wanted.items() if value is not None}
    found = asked(settings, "list_runs", filter=chosen, limit=limit)
    if as_json:
        echo_json(found)
    elif found["runs"]:
        click.echo(columns([("RUN", "PRODUCT", "STATE", "STARTED"), *table(found["runs"])]))
    else:
        click.echo("There are no such runs." if chosen else "There are no runs yet.")


@launch.command()
@_run_id
@_json
@click.pass_obj
def watch(settings: Settings, run_id: str, *, as_json: bool) -> None:  # noqa: ARG001 - read by show
    """Follow a run until it ends or waits, whoever drives it.

    With --json every event is a line of its own, and the status is what comes last.

    \b
    Examples:
      cleats launch watch RUN_ID
    """  # noqa: D301 - click reads the backspace
    answer = run(settings, lambda desk: watched(desk, run_id))
    show(answer) if answer["ok"] else fail(answer)


@launch.command()
@_run_id
@_json
@click.pass_obj
def resume(settings: Settings, run_id: str, *, as_json: bool) -> None:  # noqa: ARG001 - as above
    """Go on with a run, here and now, until it may rest.

    \b
    Examples:
      cleats launch resume RUN_ID
    """  # noqa: D301 - click reads the backspace
    answer = run(settings, lambda desk: moved(desk, "resume", run_id))
    show(answer) if answer["ok"] else fail(answer)


@launch.command()
@_run_id
@_json
@click.pass_obj
def validate(settings: Settings, run_id: str, *, as_json: bool) -> None:
    """Run the gates on a run as it is now, and say what they find.

    Its worktree may have been edited by hand: it is `work/site` in the folder of the run.

    \b
    Examples:
      cleats launch validate RUN_ID
    """  # noqa: D301 - click reads the backspace
    _decided(settings, run_id, lambda desk: moved(desk, "validate", run_id), as_json=as_json)


_NO_MORE = ("FIX_EXHAUSTED", "ILLEGAL_STATE")
"""What says that nothing is left to fix: no rule, no attempt, or no run, since a fix ended it."""


@launch.command()
@_run_id
@click.option("--all", "every", is_flag=True, help="Go on until nothing is left that has a rule.")
@_json
@click.pass_obj
def fix(settings: Settings, run_id: str, *, every: bool, as_json: bool) -> None:
    """Fix the worst issue that a rule can fix, and validate again.

    \b
    Examples:
      cleats launch fix RUN_ID
      cleats launch fix RUN_ID --all
    """  # noqa: D301 - click reads the backspace

    async def work(desk: Desk) -> dict[str, Any]:
        answer = await moved(desk, "fix_next", run_id)
        while every and answer["ok"] and not answer["validation_report"]["ok"]:
            last, answer = answer, await moved(desk, "fix_next", run_id)
            if not answer["ok"] and answer["error"]["code"] in _NO_MORE:
                return last
        return answer

    _decided(settings, run_id, work, as_json=as_json)


@launch.command()
@_run_id
@_json
@click.pass_obj
def cancel(settings: Settings, run_id: str, *, as_json: bool) -> None:
    """End a run for good, wherever it is driven. Its artifacts can still be read.

    \b
    Examples:
      cleats launch cancel RUN_ID
    """  # noqa: D301 - click reads the backspace
    answer = asked(settings, "cancel", run_id=run_id)
    echo_json(answer) if as_json else click.echo(f"{run_id} is cancelled.")


@launch.command("open-pr")
@_run_id
@_json
@click.pass_obj
def open_pr(settings: Settings, run_id: str, *, as_json: bool) -> None:
    """Commit the pages of a run to a branch and open the request.

    \b
    Examples:
      cleats launch open-pr RUN_ID
    """  # noqa: D301 - click reads the backspace
    answer = run(settings, lambda desk: moved(desk, "open_pr", run_id))
    if not answer["ok"]:
        fail(answer)
    if as_json:
        echo_json(answer)
    else:
        names = ("pr_url", "branch", "commit_sha")
        click.echo(columns([(name, answer[name]) for name in names]))


@launch.command()
@_run_id
@click.argument("name", required=False)
@click.option("-o", "--output", type=click.File("wb"), help="Write the bytes to this file.")
@_json
@click.pass_obj
def artifact(
    settings: Settings, run_id: str, name: str | None, *, output: Any, as_json: bool
) -> None:
    """Print an artifact of a run, or the names of all.

    \b
    Examples:
      cleats launch artifact RUN_ID
      cleats launch artifact RUN_ID validation_report.json
    """  # noqa: D301 - click reads the backspace
    if name is None:
        found = asked(settings, "get_status", run_id=run_id)["status"]["artifacts"]
        rows = [(each["sha256"][:12], each["name"]) for each in found]
        echo_json(found) if as_json else click.echo(columns(rows) if rows else "None yet.")
        return
    answer = asked(settings, "get_artifact", run_id=run_id, artifact_name=name)
    if as_json:
        echo_json(answer)
        return
    target = output or sys.stdout.buffer
    target.write(_bytes(answer["artifact"]))


def _bytes(found: dict[str, str]) -> bytes:
    from base64 import b64decode  # noqa: PLC0415 - rarely needed

    if found["content_type"].endswith(";base64"):
        return b64decode(found["content"])
    return found["content"].encode()


def _decided(
    settings: Settings,
    run_id: str,
    work: Callable[[Desk], Coroutine[Any, Any, dict[str, Any]]],
    *,
    as_json: bool,
) -> None:
    """Do what ends with a report; print it and what can be done next, and leave."""

    async def whole(desk: Desk) -> tuple[dict[str, Any], dict[str, Any]]:
        answer = await work(desk)
        return answer, await desk.call("get_status", run_id=run_id) if answer["ok"] else answer

    answer, now = run(settings, whole)
    if not answer["ok"]:
        fail(answer)
    _verdict(answer, now, as_json=as_json)


def _verdict(answer: dict[str, Any], now: dict[str, Any], *, as_json: bool) -> None:
    report = answer["validation_report"]
    over = now["ok"] and now["status"]["state"] == "FAILED"
    if as_json:
        echo_json(answer)
    else:
        if answer.get("fixed_issue_id"):
            click.echo(f"Fixed {answer['fixed_issue_id']}.")
        failed = [gate["name"] for gate in report["gates"] if not gate["ok"]]
        passed = len(report["gates"]) - len(failed)
        click.echo(f"{counted(passed, 'gate')} passed, {len(failed)} failed.")
        issues = [(i["severity"], i["gate"], _place(i) + i["message"]) for i in report["issues"]]
        if issues:
            click.echo(heading(counted(len(issues), "issue")))
            click.echo(columns(issues))
        for line in after(now["status"]) if now["ok"] else ():
            click.echo(line)
        if over:
            click.echo("The run has failed.")
    verdict = "READY_FOR_PR" if report["ok"] else "VALIDATING"
    sys.exit(exit_code("FAILED" if over else verdict))


def _place(issue: dict[str, Any]) -> str:
    location = issue.get("location", {})
    line = f":{location['line']}" if location.get("line") else ""
    return f"{location['path']}{line}: " if location else ""
