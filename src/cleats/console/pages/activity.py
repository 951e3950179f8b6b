"""What the server does: recent calls with percentiles, the queue, and the settings in force."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from cleats.console.caller_console import CallerConsole, is_fragment_request
from cleats.contract.errors import ToolError
from cleats.runtime.recent_calls import summarize_durations

MAX_LISTED_CALLS: Final = 100


async def show_activity(console: CallerConsole, request: Request) -> Response:
    """Show recent calls and the queue, as a page or for a script that refreshes them."""
    with_own = request.query_params.get("all") == "1"
    calls = await console.list_recent_calls(with_own=with_own)
    status = await console.server.status.collect()
    registry = console.tools.registry
    open_calls = [call for call in status.list_open_calls() if registry.has_tool(call["tool"])]
    values: dict[str, Any] = {
        "area": "tools",
        "tab": "activity",
        "title": "Activity",
        "calls": calls[:MAX_LISTED_CALLS],
        "total": len(calls),
        "summaries": summarize_durations(calls),
        "queue": status.get_queue_load(),
        "open_calls": [] if console.caller.is_restricted else open_calls,
        "uptime_ms": status.uptime * 1000,
        "with_own": with_own,
    }
    template = "activity_body.html" if is_fragment_request(request) else "activity.html"
    return console.render(request, template, values)


async def show_settings(console: CallerConsole, request: Request) -> Response:
    """Show the settings in force, as `config_status` reports them."""
    console.tools.registry.find("config_status")
    report, error = None, None
    try:
        report = await console.tools.run("config_status")
    except ToolError as tool_error:
        error = tool_error
    values = {"area": "tools", "tab": "settings", "title": "Settings", "report": report, "error": error}
    return console.render(request, "settings.html", values)


ROUTES = (
    ("GET", "/console/activity", show_activity),
    ("GET", "/console/settings", show_settings),
)
