"""Runs as a person sees them: a live display in a terminal, lines elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from cleats.cli.output import format_columns, format_count, style_heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cleats.toolsets.launch.runs.events import RunEvent
    from cleats.toolsets.launch.store.model import Run

RUN_STAGES: Final = {
    "CREATED": "created",
    "CLONED_INPUTS": "cloned",
    "INGESTED": "read",
    "FACTS_READY": "facts",
    "PLAN_READY": "plan",
    "DRAFT_READY": "drafts",
    "VALIDATING": "validation",
    "READY_FOR_PR": "ready",
    "DONE": "done",
}
"""The stages of a run that are shown to a person, by state."""

PRECEDING_STAGES: Final = {
    "DRAFTING": "PLAN_READY",
    "LINKING": "DRAFT_READY",
    "FIXING": "VALIDATING",
    "PR_OPENED": "READY_FOR_PR",
}
"""The states between two stages, and the stage that precedes each."""

MAX_SHOWN_ISSUES: Final = 8
"""The most issues that a live display lists."""

SEVERITY_COLOURS: Final = {"blocker": "red", "error": "red", "warn": "yellow", "info": "cyan"}
STATE_COLOURS: Final = {"DONE": "green", "READY_FOR_PR": "green", "FAILED": "red", "CANCELLED": "yellow"}
SECTION_COLOURS: Final = {"DONE": "green", "BLOCKED": "red"}

NEXT_COMMANDS: Final = {"VALIDATING": "cleats launch fix {run_id}", "READY_FOR_PR": "cleats launch open-pr {run_id}"}
"""The command that continues a run waiting for a decision; any other run is resumed."""

FINAL_STATES: Final = ("DONE", "FAILED", "CANCELLED")

MISSING_TOOL_TEXT: Final = "which is not installed"
"""The text of a gate that lacks its tool; no fix can help with that."""


def render_run(run: "Run", gates: Mapping[str, bool], progress_text: str = "") -> "RenderableType":
    """Render the complete state of a run."""
    from rich.console import Group  # noqa: PLC0415 - only in a terminal
    from rich.text import Text  # noqa: PLC0415

    snapshot = run.snapshot
    state = str(snapshot["run_state"])
    colour = STATE_COLOURS.get(state, "bold cyan")
    title = Text.assemble((run.run_id, "bold"), "  ", run.product_slug, "  ", (state, colour))
    sections = _render_states("sections", snapshot["section_states"].items(), SECTION_COLOURS)
    parts: list[Any] = [title, _render_stages(state), sections]
    if gates:
        marks = [(name, "ok" if ok else "failed") for name, ok in gates.items()]
        parts.append(_render_states("gates", marks, {"ok": "green", "failed": "red"}))
    for item in (item for item in snapshot["work_items"] if item["status"] == "running"):
        attempt_note = f", attempt {item['attempt']}" if item["attempt"] > 1 else ""
        progress_note = f": {progress_text}" if progress_text and item["scope_key"] not in progress_text else ""
        parts.append(Text(f"  {item['worker']} {item['scope_key']}{attempt_note}{progress_note}", style="cyan"))
    parts += _render_issues(snapshot)
    return Group(*parts)


def _render_stages(state: str) -> Any:
    from rich.text import Text  # noqa: PLC0415 - only in a terminal

    names = list(RUN_STAGES)
    current_stage = names.index(PRECEDING_STAGES.get(state, state)) if state not in {"FAILED", "CANCELLED"} else -1
    rail = Text("  ")
    for number, label in enumerate(RUN_STAGES.values()):
        done = number < current_stage or current_stage == len(RUN_STAGES) - 1
        mark, style = ("●", "green") if done else ("◐", "cyan") if number == current_stage else ("○", "dim")
        rail.append(f"{mark} {label}  ", style=style)
    return rail


def _render_states(label: str, pairs: Any, styles: Mapping[str, str]) -> Any:
    from rich.text import Text  # noqa: PLC0415 - only in a terminal

    line = Text.assemble((f"  {label:<9} ", "dim"))
    for name, state in pairs:
        line.append(f"{name} ")
        line.append(f"{state}  ".lower(), style=styles.get(state, "cyan"))
    return line


def _render_issues(snapshot: Mapping[str, Any]) -> list[Any]:
    from rich.text import Text  # noqa: PLC0415 - only in a terminal

    from cleats.toolsets.launch.runs.snapshot import list_open_issues  # noqa: PLC0415

    issues = list_open_issues(snapshot)
    lines = [
        Text.assemble(f"  {issue.gate:<20} ", (f"{issue.severity:<8}", SEVERITY_COLOURS[issue.severity]), issue.title)
        for issue in issues[:MAX_SHOWN_ISSUES]
    ]
    if len(issues) > MAX_SHOWN_ISSUES:
        lines.append(Text(f"  and {len(issues) - MAX_SHOWN_ISSUES} more", style="dim"))
    return lines


def format_event(event: "RunEvent") -> str:
    """Format an event as a line of a log, or return an empty string if only programs need it."""
    payload = event.payload
    match event.type:
        case "RUN_STATE_CHANGED":
            text = payload["new_state"]
        case "WORK_ITEM_STARTED":
            text = f"  {payload['worker']} {payload['scope_key']}"
        case "WORK_ITEM_FAILED":
            text = f"  failed: {payload['error']['message']}"
        case "SECTION_STATE_CHANGED":
            text = f"  section {payload['section']}: {payload['new_state']}"
        case "GATE_RUN_FINISHED":
            text = f"  gate {payload['gate']}: {'ok' if payload['ok'] else 'failed'}"
        case "ISSUE_OPENED":
            issue = payload["issue"]
            text = f"  {issue['severity']} of {issue['gate']}: {issue['message'].splitlines()[0]}"
        case "PR_OPENED":
            text = f"  request: {payload.get('pr_url', '')}"
        case _:
            return ""
    return f"{event.ts[11:19]} {text}"


def render_status(status: Mapping[str, Any], *, is_driven: bool = False) -> Iterator[str]:
    """Yield a status as lines; `is_driven` says that a process is driving the run."""
    state = status["state"]
    yield f"{style_heading(status['run_id'])}  {click.style(state, fg=STATE_COLOURS.get(state, 'cyan'))}"
    if sections := status["section_states"]:
        yield format_columns(list(sections.items()))
    if issues := status["open_issues"]:
        rows = [(issue["severity"], issue["gate"], issue["title"]) for issue in issues]
        yield style_heading(format_count(len(rows), "open issue"))
        yield format_columns(rows, cut=True)
    yield from suggest_next_step(status, is_driven=is_driven)


def suggest_next_step(status: Mapping[str, Any], *, is_driven: bool = False) -> Iterator[str]:
    """Yield the next step that a person can take with a run, or nothing if it has ended."""
    state, run_id = status["state"], status["run_id"]
    if is_driven and state not in FINAL_STATES:
        yield f"Next: cleats launch watch {run_id} (another process is running it)"
    elif any(MISSING_TOOL_TEXT in issue["title"] for issue in status["open_issues"]):
        yield f"Next: cleats doctor, then cleats launch validate {run_id}"
    elif state not in FINAL_STATES:
        yield f"Next: {NEXT_COMMANDS.get(state, 'cleats launch resume {run_id}').format(run_id=run_id)}"


def format_run_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Format runs as a table; empty if there are none."""
    rows = [("RUN", "PRODUCT", "STATE", "STARTED")]
    for run in runs:
        state = click.style(run["state"], fg=STATE_COLOURS.get(run["state"], "cyan"))
        rows.append((run["run_id"], run["product_slug"], state, run["started_at"][:16].replace("T", " ")))
    return format_columns(rows) if runs else ""
