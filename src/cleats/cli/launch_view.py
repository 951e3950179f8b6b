"""A run as a person sees it: a picture that changes in a terminal, lines elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from cleats.cli.printing import columns, counted, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cleats.toolsets.launch.events import Event
    from cleats.toolsets.launch.store.port import Run

WAY: Final = (
    ("CREATED", "created"),
    ("CLONED_INPUTS", "cloned"),
    ("INGESTED", "read"),
    ("FACTS_READY", "facts"),
    ("PLAN_READY", "plan"),
    ("DRAFT_READY", "drafts"),
    ("VALIDATING", "validation"),
    ("READY_FOR_PR", "ready"),
    ("DONE", "done"),
)
"""The stations of a run, as far as a person cares."""

BETWEEN: Final = {
    "DRAFTING": "PLAN_READY",
    "LINKING": "DRAFT_READY",
    "FIXING": "VALIDATING",
    "PR_OPENED": "READY_FOR_PR",
}
"""States between two stations, and the one that they come after."""

ISSUES: Final = 8
"""How many issues a picture has room for."""

SEVERE: Final = {"blocker": "red", "error": "red", "warn": "yellow", "info": "cyan"}
STATE: Final = {"DONE": "green", "READY_FOR_PR": "green", "FAILED": "red", "CANCELLED": "yellow"}
SECTION: Final = {"DONE": "green", "BLOCKED": "red"}

NEXT: Final = {
    "VALIDATING": "cleats launch fix {run_id}",
    "READY_FOR_PR": "cleats launch open-pr {run_id}",
}
"""What a person can do with a run that waits for a decision; any other is resumed."""

ENDS: Final = ("DONE", "FAILED", "CANCELLED")


MISSING: Final = "which is not installed"
"""What a gate says that lacks its tool: no fix brings that."""


def picture(run: "Run", gates: Mapping[str, bool], saying: str = "") -> "RenderableType":
    """The whole run at one moment."""
    from rich.console import Group  # noqa: PLC0415 - only in a terminal
    from rich.text import Text  # noqa: PLC0415

    snapshot = run.snapshot
    state = str(snapshot["run_state"])
    title = Text.assemble(
        (run.run_id, "bold"), "  ", run.product_slug, "  ", (state, STATE.get(state, "bold cyan"))
    )
    parts: list[Any] = [title, _rail(state)]
    parts.append(_line("sections", snapshot["section_states"].items(), SECTION))
    if gates:
        marks = [(name, "ok" if ok else "failed") for name, ok in gates.items()]
        parts.append(_line("gates", marks, {"ok": "green", "failed": "red"}))
    working = [item for item in snapshot["work_items"] if item["status"] == "running"]
    for item in working:
        again = f", attempt {item['attempt']}" if item["attempt"] > 1 else ""
        said = f": {saying}" if saying and item["scope_key"] not in saying else ""
        parts.append(Text(f"  {item['worker']} {item['scope_key']}{again}{said}", style="cyan"))
    parts += _issues(snapshot)
    return Group(*parts)


def _rail(state: str) -> Any:
    from rich.text import Text  # noqa: PLC0415 - only in a terminal

    names = [name for name, _ in WAY]
    reached = names.index(BETWEEN.get(state, state)) if state not in {"FAILED", "CANCELLED"} else -1
    rail = Text("  ")
    for number, (_, word) in enumerate(WAY):
        done = number < reached or reached == len(WAY) - 1
        mark, style = (
            ("●", "green") if done else ("◐", "cyan") if number == reached else ("○", "dim")
        )
        rail.append(f"{mark} {word}  ", style=style)
    return rail


def _line(name: str, pairs: Any, styles: Mapping[str, str]) -> Any:
    from rich.text import Text  # noqa: PLC0415 - only in a terminal

    line = Text.assemble((f"  {name:<9} ", "dim"))
    for each, state in pairs:
        line.append(f"{each} ")
        line.append(f"{state}  ".lower(), style=styles.get(state, "cyan"))
    return line


def _issues(snapshot: Mapping[str, Any]) -> list[Any]:
    from rich.text import Text  # noqa: PLC0415 - only in a terminal

    from cleats.toolsets.launch.snapshot import open_issues  # noqa: PLC0415

    found = open_issues(snapshot)
    lines = [
        Text.assemble(
            f"  {issue.gate:<20} ", (f"{issue.severity:<8}", SEVERE[issue.severity]), issue.title
        )
        for issue in found[:ISSUES]
    ]
    if len(found) > ISSUES:
        lines.append(Text(f"  and {len(found) - ISSUES} more", style="dim"))
    return lines


def told(event: "Event") -> str:
    """One event as a line for a log; empty for what only programs care about."""
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


def summary(status: Mapping[str, Any], *, driven: bool = False) -> Iterator[str]:
    """A status in lines; of a run that is `driven`, somebody works on it."""
    state = status["state"]
    yield f"{heading(status['run_id'])}  {click.style(state, fg=STATE.get(state, 'cyan'))}"
    if sections := status["section_states"]:
        yield columns(list(sections.items()))
    if issues := status["open_issues"]:
        rows = [(i["severity"], i["gate"], i["title"]) for i in issues]
        yield heading(counted(len(rows), "open issue"))
        yield columns(rows, cut=True)
    yield from after(status, driven=driven)


def after(status: Mapping[str, Any], *, driven: bool = False) -> Iterator[str]:
    """What a person can do next with a run: one line, or none when it has ended."""
    state, run_id = status["state"], status["run_id"]
    if driven and state not in ENDS:
        yield f"Next: cleats launch watch {run_id}, for another process drives it"
    elif any(MISSING in issue["title"] for issue in status["open_issues"]):
        yield f"Next: cleats doctor, then cleats launch validate {run_id}"
    elif state not in ENDS:
        yield f"Next: {NEXT.get(state, 'cleats launch resume {run_id}').format(run_id=run_id)}"


def rows(runs: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Runs as a table."""
    return [
        (
            run["run_id"],
            run["product_slug"],
            click.style(run["state"], fg=STATE.get(run["state"], "cyan")),
            f"{run['started_at'][:16].replace('T', ' ')}",
        )
        for run in runs
    ]
