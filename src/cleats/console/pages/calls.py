"""The page of one background call, its stream of progress, and cancelling it."""

from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from cleats.console.background_calls import BackgroundCall
from cleats.console.caller_console import CallerConsole, redirect_to
from cleats.console.sign_in import read_next_path
from cleats.contract.payload import get_outcome_error
from cleats.transports.http.responses import EmitEvent, EventStream

_encode = msgspec.json.Encoder().encode


def find_call(console: CallerConsole, request: Request) -> BackgroundCall:
    """Return the call that a path names; calls of other callers are not found."""
    background = console.background.find(request.path_params["call_id"])
    if background is None:
        raise HTTPException(404)
    return background


def describe_progress(background: BackgroundCall) -> dict[str, Any]:
    """Return the progress of a call for a script."""
    error = None if background.outcome is None else get_outcome_error(background.outcome)
    report = background.progress
    return {
        "state": background.state,
        "percent": background.percent,
        "phase": report.phase if report else "",
        "message": error.explanation if error else (report.message if report else ""),
    }


async def stream_call(console: CallerConsole, request: Request) -> Response:
    """Stream the progress of a call; the end of the call is the last event."""
    background = find_call(console, request)

    async def produce_events(emit: EmitEvent, _receive: Receive) -> None:
        async for changed in console.background.follow(background):
            name = "progress" if changed.outcome is None else "end"
            await emit(name, _encode(describe_progress(changed)))

    return EventStream(produce_events)  # type: ignore[return-value] # an ASGI application, as Starlette wants it


async def cancel_call(console: CallerConsole, request: Request) -> Response:
    """Cancel a call."""
    form = await console.read_form(request)
    background = find_call(console, request)
    background.call.cancel()
    await console.background.wait(background, 5.0)
    return redirect_to(read_next_path(form.get("next")))


ROUTES = (
    ("GET", "/console/calls/{call_id}/events", stream_call),
    ("POST", "/console/calls/{call_id}/cancel", cancel_call),
)
