"""Runs that are driven or watched from a terminal, with a live view."""

import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final

import click

from cleats.cli.launch.calls import DECISION_EXIT_CODE, LaunchClient, LaunchInterrupted, check_answer, run_with_client
from cleats.cli.launch.view import FINAL_STATES, NEXT_COMMANDS, format_event, render_run, render_status
from cleats.cli.output import is_json_requested, print_answer, shorten_home
from cleats.cli.tool_command import json_command
from cleats.settings import Settings

if TYPE_CHECKING:
    from rich.live import Live

    from cleats.toolsets.launch.store.model import Run

POLL_SECONDS: Final = 0.2
"""The seconds between two reads of the store."""


def exit_code(state: str) -> int:
    """Return the exit code of a command that leaves a run in this state."""
    if state in ("FAILED", "CANCELLED"):
        return 1
    return DECISION_EXIT_CODE if state == "VALIDATING" else 0


@dataclass
class RunView:
    """The live view of a run."""

    client: LaunchClient
    run_id: str
    live: "Live | None" = None
    lines: Any = None
    """The stream for event lines when there is no live display: stdout, stderr or None."""
    shown_events: int = 0
    gates: dict[str, bool] = field(default_factory=dict)
    progress_text: str = ""

    async def refresh(self) -> "Run":
        """Read and show what is new, and return the run."""
        from anyio import to_thread  # noqa: PLC0415 - help needs none of these

        store = self.client.launches.engine.store
        run = await to_thread.run_sync(store.get, self.run_id)
        if run.tail.length != self.shown_events:
            first_event = self.shown_events
            events = await to_thread.run_sync(store.list_events, self.run_id, first_event)
            events = events[self.shown_events - first_event :]  # a concurrent refresh may have shown some already
            self.shown_events += len(events)  # there may be more events by now than the run had
            for event in events:
                if event.type == "GATE_RUN_FINISHED":
                    self.gates[event.payload["gate"]] = event.payload["ok"]
                if event.type == "WORK_ITEM_STARTED":
                    self.progress_text = ""
                line = json.dumps(event.as_json(), ensure_ascii=False) if is_json_requested() else format_event(event)
                if line and self.lines is not None:
                    click.echo(line, file=self.lines)
        if self.live is not None:
            self.live.update(render_run(run, self.gates, self.progress_text))
        return run

    async def show(self, report: Any) -> None:
        """Remember the progress message of the worker."""
        self.progress_text = report.message


@asynccontextmanager
async def show_live(
    client: LaunchClient, run_id: str, *, lines: Any, include_past: bool = True
) -> AsyncIterator[RunView]:
    """Show a run, and its past events if asked to, while the block runs: live in a terminal, by lines elsewhere."""
    import asyncio  # noqa: PLC0415 - help needs none of these

    view = RunView(client, run_id, lines=lines)
    if sys.stderr.isatty() and not is_json_requested():
        from rich.console import Console  # noqa: PLC0415 - only in a terminal
        from rich.live import Live  # noqa: PLC0415

        view.lines = None
        view.live = Live(console=Console(stderr=True), refresh_per_second=8, transient=True)
        view.live.start()

    async def poll() -> None:
        while True:
            await view.refresh()
            await asyncio.sleep(POLL_SECONDS)

    if not include_past:
        output, view.lines = view.lines, None
        await view.refresh()
        view.lines = output
    poll_task = asyncio.create_task(poll())
    try:
        yield view
    finally:
        poll_task.cancel()
        await asyncio.gather(poll_task, return_exceptions=True)
        await view.refresh()
        if view.live is not None:
            view.live.stop()


async def drive_run(client: LaunchClient, tool: str, run_id: str) -> dict[str, Any]:
    """Call a tool that drives a run, with a live view of new events, and return its answer."""
    answer = await client.call("get_status", run_id=run_id)
    if not answer["ok"]:
        return answer
    lines = None if is_json_requested() else sys.stderr
    async with show_live(client, run_id, lines=lines, include_past=False) as view:
        return await client.call(tool, view.show, run_id=run_id)


async def watch_run(client: LaunchClient, run_id: str) -> dict[str, Any]:
    """Follow a run until it ends or is idle, whichever process drives it; return its status."""
    import anyio  # noqa: PLC0415 - help needs none of these

    answer = await client.call("get_status", run_id=run_id)
    if not answer["ok"]:
        return answer
    async with show_live(client, run_id, lines=sys.stdout) as view:
        while not _is_idle(await view.refresh()):
            with anyio.move_on_after(POLL_SECONDS):
                await client.stop.requested.wait()
                raise LaunchInterrupted(run_id)
    return await client.call("get_status", run_id=run_id)


def _is_idle(run: "Run") -> bool:
    return run.snapshot["run_state"] in FINAL_STATES or not run.owner or run.expires <= time()


async def read_status(client: LaunchClient, run_id: str) -> tuple[dict[str, Any], bool]:
    """Return the status of a run, and whether a process is driving it."""
    from anyio import to_thread  # noqa: PLC0415 - help needs none of these

    answer = await client.call("get_status", run_id=run_id)
    if not answer["ok"]:
        return answer, False
    return answer, not _is_idle(await to_thread.run_sync(client.launches.engine.store.get, run_id))


def _describe_review(run_id: str, port: int | None) -> Iterator[str]:
    """Yield where a person finds the pages of a run."""
    from cleats.cli.launch.console_link import format_console_url  # noqa: PLC0415 - help needs none of these
    from cleats.cli.serve import DEFAULT_PORT  # noqa: PLC0415
    from cleats.toolsets.launch.runs.storage import RunFolder  # noqa: PLC0415
    from cleats.toolsets.launch.setup import get_runs_folder  # noqa: PLC0415

    pages = RunFolder(get_runs_folder(click.get_current_context().obj) / run_id).site
    if pages.is_dir():
        yield f"Pages:  {shorten_home(pages)}"
    yield f"Review: start `cleats http` and open {format_console_url(run_id, port or DEFAULT_PORT)}"


def print_status(answer: dict[str, Any], *, is_driven: bool = False, port: int | None = None) -> None:
    """Print the status of a run and exit with the matching code."""

    def render_answer(answer: dict[str, Any]) -> Iterator[str]:
        yield from render_status(answer["status"], is_driven=is_driven)
        if answer["status"]["state"] in NEXT_COMMANDS:
            yield from _describe_review(answer["status"]["run_id"], port)

    print_answer(answer, render_answer)
    sys.exit(exit_code(answer["status"]["state"]))


@click.command()
@click.argument("config", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--product-url", help="Start from the URL of a product page.")
@click.option("--repo-url", help="Start from the URL of a GitHub repository.")
@click.option("--key", help="Idempotency key: a retry with the same key and configuration returns the same run.")
@click.option("--no-drive", is_flag=True, help="Only create the run; continue it with an agent or `resume`.")
@click.option("--open", "opens_console", is_flag=True, help="Open the run in the console of a running `cleats http`.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of that server. [default: 7345]")
@json_command
def start(
    settings: Settings,
    /,
    config: str | None,
    *,
    key: str | None,
    no_drive: bool,
    opens_console: bool,
    port: int | None,
    **addresses: str | None,
) -> None:
    """Start a run from CONFIG or from a URL.

    CONFIG is a YAML, JSON or TOML file. The command follows the run until it is ready for its pull request,
    needs your decision or fails. After Ctrl-C, `cleats launch resume` continues it.

    Examples:
      cleats launch start run.yaml
      cleats launch start run.yaml --open
      cleats launch start --repo-url https://github.com/owner/name --no-drive --json
    """
    tool, arguments = _choose_tool(config, **addresses)

    async def start_run(client: LaunchClient) -> dict[str, Any]:
        answer = await client.call(tool, idempotency_key=key, **arguments)
        if answer["ok"] and opens_console:
            from cleats.cli.launch.console_link import open_in_console  # noqa: PLC0415 - only for this option

            open_in_console(answer["run_id"], *([port] if port else []))
        if not answer["ok"] or no_drive:
            return answer
        if not is_json_requested():
            click.echo(answer["run_id"], err=True)
        return await drive_run(client, "resume", answer["run_id"])

    answer = check_answer(run_with_client(settings, start_run))
    if "status" in answer:
        print_status(answer, port=port)
    print_answer(answer, lambda answer: answer["run_id"])


def _choose_tool(config: str | None, product_url: str | None, repo_url: str | None) -> tuple[str, dict[str, Any]]:
    inputs = [value for value in (config, product_url, repo_url) if value is not None]
    if len(inputs) != 1:
        raise click.UsageError("Give one of CONFIG, --product-url and --repo-url.")
    if product_url is not None:
        return "start_run_from_product_url", {"url": product_url}
    if repo_url is not None:
        return "start_run_from_github_repo_url", {"github_repo_url": repo_url}
    return "start_run", {"run_config": read_run_config(Path(inputs[0]))}


def read_run_config(path: Path) -> Mapping[str, Any]:
    """Read a run configuration from a file; the suffix selects the format, YAML by default."""
    from cleats.toolsets.launch.source.checkout.safe_parsing import parse_document  # noqa: PLC0415 - help needs none

    try:
        return parse_document(path.name.lower(), path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path}: {error}") from None
