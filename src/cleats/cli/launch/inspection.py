"""Commands that look at the pages of a run: `last`, `diff`, `explain` and `preview`."""

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from cleats.cli.launch.calls import LaunchClient, exit_with_failure, run_with_client
from cleats.cli.launch.run_argument import RUN, find_last_run, run_command
from cleats.cli.output import echo_json, is_json_requested, print_answer
from cleats.cli.tool_command import json_command
from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings

if TYPE_CHECKING:
    from cleats.toolsets.launch.runs.storage import RunFolder
    from cleats.toolsets.launch.store.model import Run

DEFAULT_PORT = 1313


@click.command()
@json_command
def last(settings: Settings) -> None:
    """Print the id of the last run.

    Examples:
      cleats launch last
      ls ~/.local/share/cleats/launch/runs/$(cleats launch last)
    """
    print_answer({"ok": True, "run_id": find_last_run(settings)}, lambda answer: str(answer["run_id"]))


@click.command()
@run_command
def diff(settings: Settings, run_id: str) -> None:
    """Show what a run changes in the site, as a patch.

    The patch includes the edits that you made in the folder of the pages; `git apply` applies it.

    Examples:
      cleats launch diff
      cleats launch diff fe3f > changes.patch
    """

    async def read_patch(client: LaunchClient) -> str:
        from cleats.toolsets.launch.workers import validate  # noqa: PLC0415 - help needs none of these

        run, folder = await _open_run(client, run_id)
        if folder.site.is_dir():
            base = (await _read_document(client, run, "site_context.json"))["site"]["resolved_sha"]
            env = client.launches.git_env
            archive = await validate.build_change_archive(folder.site, str(base), env)
        else:
            archive = (await client.launches.read_artifact(run_id, validate.CHANGE_ARCHIVE_NAME)).data
        return validate.read_archived_patch(archive).decode("utf-8", "replace")

    patch = _run_or_fail(settings, read_patch)
    if is_json_requested():
        echo_json({"ok": True, "run_id": run_id, "patch": patch})
    else:
        sys.stdout.write(patch or "No changes.\n")


@click.command()
@click.argument("place", metavar="PAGE:LINE")
@click.option("--run", "run_id", type=RUN, help="The run. [default: the last run]")
@json_command
def explain(settings: Settings, place: str, *, run_id: str | None) -> None:
    """Show the claims and the evidence of a line of a page.

    PAGE is the path of a page in the site, or the end of it.

    Examples:
      cleats launch explain installation.md:12
      cleats launch explain content/docs/measurekit/_index.md:8 --run fe3f
    """
    page, _, number = place.rpartition(":")
    if not page or not number.isdecimal():
        raise click.UsageError(f"{place!r} is not a page and a line, such as installation.md:12.")
    selected_id = run_id or find_last_run(settings)

    async def explain_line(client: LaunchClient) -> dict[str, Any]:
        from anyio import to_thread  # noqa: PLC0415 - help needs none of these

        from cleats.toolsets.launch.explanation import LineExplainer  # noqa: PLC0415
        from cleats.toolsets.launch.store import run_files  # noqa: PLC0415

        _, folder = await _open_run(client, selected_id)
        engine = client.launches.engine

        def read_document(name: str) -> Any:
            return json.loads(run_files.read_artifact(engine.store, engine.runs, selected_id, name).data)

        explainer = LineExplainer(folder, read_document)
        return await to_thread.run_sync(explainer.explain_line, page, int(number))

    explanation = _run_or_fail(settings, explain_line)
    print_answer({"ok": True, "run_id": selected_id, **explanation}, _render_explanation)


RUN_LABELS: Final = {
    "passed": "It ran without an error.",
    "failed": "It failed when it was run.",
    "inconclusive": "It was run without a result.",
    "not_run": "It was not run.",
}


def _render_explanation(answer: dict[str, Any]) -> Iterator[str]:
    yield f"{answer['page']}:{answer['line']}  {answer['text'].strip()}"
    if answer["kind"] == "code":
        yield "Code from the source:" if answer["sources"] else "Code that is not from the source."
        for source in answer["sources"]:
            yield from _render_source(source, with_text=False)
            if run := source.get("run"):
                yield f"  {RUN_LABELS[run['outcome']]}{' ' + run['reason'] if 'reason' in run else ''}"
        return
    if not answer["claims"]:
        yield f"No claim: {answer['kind']} of the template, or written by people."
    for claim in answer["claims"]:
        status = f" ({claim['status']})" if claim.get("status") else ""
        statement = claim["statement"] or "not in the evidence of this run"
        yield f"Claim {claim['claim_id'][:12]}{status}: {statement}"
        for source in claim["sources"]:
            yield from _render_source(source, with_text=True)


def _render_source(source: dict[str, Any], *, with_text: bool) -> Iterator[str]:
    lines = f"{source['start_line']}"
    if source["end_line"] > source["start_line"]:
        lines += f"-{source['end_line']}"
    yield f"  {source['path']}:{lines} at {source['commit'][:12]}"
    yield from (f"    {line}" for line in source["text"] if with_text)


@click.command()
@click.option(
    "--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, show_default=True, help="Port to listen on."
)
@run_command
def preview(settings: Settings, run_id: str, *, port: int) -> None:
    """Serve the site with the pages of a run on this machine.

    Hugo or MkDocs serves it and shows your edits at once; Ctrl-C stops it.

    Examples:
      cleats launch preview
      cleats launch preview fe3f --port 8000
    """

    async def serve_site(client: LaunchClient) -> int:
        import anyio  # noqa: PLC0415 - help needs none of these

        from cleats.system.processes import process  # noqa: PLC0415
        from cleats.toolsets.launch.site import preview as site_preview  # noqa: PLC0415

        run, folder = await _open_run(client, run_id)
        if not folder.site.is_dir():
            message = f"The checkouts of {run_id} were removed."
            raise ToolError(ErrorCode.ILLEGAL_STATE, message, hint="Start another run.")
        command = site_preview.plan_preview(run.config, folder.root, client.launches.worker_settings, port)
        click.echo(f"Serving {command.address} until Ctrl-C.", err=True)
        async with process.start_command(command.argv, cwd=folder.root, env=command.env) as child:
            exit_codes: list[int] = []

            async def wait_for_exit() -> None:
                exit_codes.append(await child.wait())
                group.cancel_scope.cancel()

            async def show_output() -> None:
                async for line in child.stdout:
                    click.echo(line.decode(errors="replace").rstrip(), err=True)

            async with anyio.create_task_group() as group:
                group.start_soon(wait_for_exit)
                group.start_soon(show_output)
                await client.stop.requested.wait()
                group.cancel_scope.cancel()
        return exit_codes[0] if exit_codes else 0

    sys.exit(_run_or_fail(settings, serve_site))


async def _open_run(client: LaunchClient, run_id: str) -> "tuple[Run, RunFolder]":
    from anyio import to_thread  # noqa: PLC0415 - help needs none of these

    from cleats.toolsets.launch.runs.storage import RunFolder  # noqa: PLC0415

    engine = client.launches.engine
    run = await to_thread.run_sync(engine.store.get, run_id)
    return run, RunFolder(engine.runs / run_id)


async def _read_document(client: LaunchClient, run: "Run", name: str) -> Any:
    return json.loads((await client.launches.read_artifact(run.run_id, name)).data)


def _run_or_fail(settings: Settings, work: Any) -> Any:
    """Return the result of some work with the launch tools; print its error and exit if it fails."""

    async def run_work(client: LaunchClient) -> Any:
        try:
            return await work(client)
        except ToolError as error:
            return error

    result = run_with_client(settings, run_work)
    if isinstance(result, ToolError):
        from cleats.contract.outcome import Failed  # noqa: PLC0415 - help needs none of these
        from cleats.contract.payload import LAUNCH, AnswerMeta  # noqa: PLC0415

        exit_with_failure(LAUNCH.render_outcome(Failed(result), AnswerMeta()).body or {})
    return result
