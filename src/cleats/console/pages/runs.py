"""Launch runs: the list, one run as a timeline with its gates, its steps as buttons, and changes as they happen."""

import asyncio
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from cleats.console.caller_console import CallerConsole, is_fragment_request, redirect_to
from cleats.console.run_timeline import (
    FINAL_STATES,
    STATE_BADGES,
    STATE_LABELS,
    STATE_ORDER,
    build_timeline,
    list_actions,
    parse_events,
)
from cleats.contract.errors import ToolError
from cleats.transports.http.responses import EmitEvent, EventStream

RUNS_PER_PAGE: Final = 30

STATUS_POLL_SECONDS: Final = 1.0
"""The interval at which a stream looks at a run, as `launch_get_status` is meant to be used."""

REST_POLL_SECONDS: Final = 5.0
"""The interval for a run that has ended."""

ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "resume": ("launch_resume", "Resuming the run"),
    "validate": ("launch_validate", "Checking the pages"),
    "fix": ("launch_fix_next", "Fixing the next issue"),
    "open_pr": ("launch_open_pr", "Opening the pull request"),
    "cancel": ("launch_cancel", "Cancelling the run"),
}
"""The tool behind each button, and what is shown while it runs."""


async def list_runs(console: CallerConsole, request: Request) -> Response:
    """List the runs, newest first, by state and product."""
    console.require_area("runs")
    params = request.query_params
    state, product = params.get("state", ""), params.get("product", "").strip()
    filters = {name: value for name, value in (("state", state), ("product_slug", product)) if value}
    answer = await console.tools.run(
        "launch_list_runs", filter=filters or None, limit=RUNS_PER_PAGE, cursor=params.get("cursor") or None
    )
    values = {
        "area": "runs",
        "title": "Runs",
        "runs": answer["runs"],
        "next_cursor": answer.get("next_cursor") or "",
        "states": [*STATE_ORDER, "FAILED", "CANCELLED"],
        "labels": STATE_LABELS,
        "badges": STATE_BADGES,
        "state": state,
        "product": product,
    }
    return console.render(request, "runs.html", values)


async def show_run(console: CallerConsole, request: Request) -> Response:
    """Show one run, as a page or for a script that refreshes it."""
    console.require_area("runs")
    values = await describe_run(console, request.path_params["run_id"])
    report = await read_json_artifact(console, values["run_id"], "validation_report.json", values["artifact_names"])
    events = parse_events(await read_text_artifact(console, values["run_id"], "events.ndjson"))
    states, gate_durations = build_timeline(events)
    actions = {
        name: allowed and console.tools.has_tools(ACTIONS[name][0])
        for name, allowed in list_actions(values["state"], report).items()
    }
    pull_request = await read_json_artifact(console, values["run_id"], "pr.json", values["artifact_names"])
    created: Mapping[str, Any] = next((event["payload"] for event in events if event.get("type") == "RUN_CREATED"), {})
    values |= {
        "tab": "overview",
        "title": f"Run of {created.get('product_slug', values['run_id'])}",
        "product": created.get("product_slug", ""),
        "timeline": states,
        "upcoming": _list_upcoming(values["state"]),
        "report": report,
        "gate_durations": gate_durations,
        "actions": actions,
        "pull_request": pull_request,
    }
    template = "run_body.html" if is_fragment_request(request) else "run.html"
    return console.render(request, template, values)


def _list_upcoming(state: str) -> list[str]:
    if state in FINAL_STATES:
        return []
    state = "VALIDATING" if state == "FIXING" else state
    return list(STATE_ORDER[STATE_ORDER.index(state) + 1 :])


async def describe_run(console: CallerConsole, run_id: str) -> dict[str, Any]:
    """Return what every page of a run shows."""
    status = (await console.tools.run("launch_get_status", run_id=run_id))["status"]
    running = [
        (background, label)
        for tool, label in ACTIONS.values()
        if (background := console.background.find_running(tool, run_id)) is not None
    ]
    latest = console.background.find_latest(run_id)
    return {
        "area": "runs",
        "run_id": run_id,
        "status": status,
        "state": status["state"],
        "state_label": STATE_LABELS.get(status["state"], status["state"]),
        "state_badge": STATE_BADGES.get(status["state"], "info"),
        "labels": STATE_LABELS,
        "artifact_names": [artifact["name"] for artifact in status["artifacts"]],
        "running": running,
        "latest": latest,
        "is_final": status["state"] in FINAL_STATES,
    }


async def read_text_artifact(console: CallerConsole, run_id: str, name: str) -> str:
    """Return the text of an artifact."""
    answer = await console.tools.run("launch_get_artifact", run_id=run_id, artifact_name=name)
    return str(answer["artifact"]["content"])


async def read_json_artifact(console: CallerConsole, run_id: str, name: str, names: list[str]) -> Any:
    """Return the value of a JSON artifact, or None if the run does not have it."""
    if name not in names:
        return None
    try:
        return json.loads(await read_text_artifact(console, run_id, name))
    except (ToolError, ValueError):
        return None


async def start_action(console: CallerConsole, request: Request) -> Response:
    """Start a step of a run."""
    console.require_area("runs")
    run_id, action = request.path_params["run_id"], request.path_params["action"]
    await console.read_form(request)
    if action not in ACTIONS or not console.tools.has_tools(ACTIONS[action][0]):
        raise HTTPException(404)
    tool, _ = ACTIONS[action]
    if console.background.find_running(tool, run_id) is None:
        background = console.background.start(tool, {"run_id": run_id}, run_id)
        await console.background.wait(background, 0.5)
    return redirect_to(f"/console/runs/{run_id}")


async def stream_run(console: CallerConsole, request: Request) -> Response:
    """Stream a `change` event whenever the state, the sections, the findings or the artifacts of a run change."""
    console.require_area("runs")
    run_id = request.path_params["run_id"]
    await console.tools.run("launch_get_status", run_id=run_id)  # an unknown run is 404, not a stream

    async def produce_events(emit: EmitEvent, receive: Receive) -> None:
        disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
        seen = ""
        try:
            while not disconnected.done() and not console.background.is_stopping:
                status = (await console.tools.run("launch_get_status", run_id=run_id))["status"]
                current = sha256(json.dumps(status, sort_keys=True).encode()).hexdigest()
                if current != seen:
                    await emit("change", json.dumps({"state": status["state"], "version": current[:16]}).encode())
                    seen = current
                seconds = REST_POLL_SECONDS if status["state"] in FINAL_STATES else STATUS_POLL_SECONDS
                await asyncio.wait(
                    {disconnected, console.background.stopped}, timeout=seconds, return_when="FIRST_COMPLETED"
                )
        finally:
            disconnected.cancel()

    return EventStream(produce_events)  # type: ignore[return-value] # an ASGI application, as Starlette wants it


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


ROUTES = (
    ("GET", "/console/runs", list_runs),
    ("GET", "/console/runs/{run_id}", show_run),
    ("GET", "/console/runs/{run_id}/events", stream_run),
    ("POST", "/console/runs/{run_id}/actions/{action}", start_action),
)
