"""Tool calls for routes: one answer or a stream of events, and a client that may leave.

A client that disconnects withdraws its call; the work is stopped and nobody is told.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from secrets import token_hex
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from cleats.contract.errors import ToolError
from cleats.contract.outcome import Done, Outcome
from cleats.contract.payload import ENVELOPE, Meta, error_of
from cleats.contract.tools import Tool
from cleats.runtime.call import Call
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import Progress, Report
from cleats.transports.http import replies
from cleats.transports.http.requests import request_id
from cleats.transports.http.sse import Emit, Stream

log = logging.getLogger(__name__)

WATCH_AFTER = 0.02
"""Seconds before we listen for a client that leaves: most calls are over by then."""

Shape: TypeAlias = Callable[[Any, Call], Mapping[str, Any]]
"""From what a tool's own payload says to a route's `result`."""


def as_it_is(payload: Any, _call: Call) -> Mapping[str, Any]:
    """The tool's payload is the result."""
    result: Mapping[str, Any] = payload
    return result


class Caller:
    """Runs every call that comes over a route."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._open: set[Call] = set()
        self._prefix = token_hex(4)
        self._numbers = count(1)

    def cancel(self) -> None:
        """Withdraw whatever still runs."""
        for call in self._open:
            call.cancel()

    async def answer(
        self, request: Request, tool: Tool, arguments: Mapping[str, Any], shape: Shape = as_it_is
    ) -> Response:
        """Run a call and answer with its end."""
        call = self._call(request, tool.name, arguments)
        with self._attended(call, request.receive):
            outcome = await self._dispatcher.dispatch(call)
        return replies.reply(_shaped(tool, outcome, call, shape), call.meta)

    async def missed(self, request: Request, name: str) -> ToolError:
        """What is wrong with a call of a tool that is not there; it is recorded like any other."""
        call = self._call(request, name, {})
        error = error_of(await self._dispatcher.dispatch(call))
        assert error is not None  # noqa: S101 - there is no such tool
        return error

    def stream(
        self,
        request: Request,
        tool: Tool,
        arguments: Mapping[str, Any],
        shape: Shape = as_it_is,
        start: Mapping[str, Any] | None = None,
        *,
        steps: bool = True,
    ) -> Stream:
        """Run a call and tell of it as it goes: start, progress, result or error, done.

        Without `steps` there is no progress.
        """
        call = self._call(request, tool.name, arguments)

        async def work(emit: Emit, receive: Receive) -> None:
            async def report(report: Report) -> None:
                step = {"phase": report.phase, "message": report.message}
                await emit("progress", replies.body(Done(step), self._meta(call)))

            await emit("start", replies.body(Done(dict(start or {})), self._meta(call)))
            call.reporter = Progress(report) if steps else None
            with self._attended(call, receive):
                outcome = await self._dispatcher.dispatch(call)
            data, error = replies.sealed(_shaped(tool, outcome, call, shape), call.meta)
            await emit("result" if error is None else "error", data)
            await emit("done", replies.body(Done({}), self._meta(call)))

        return Stream(work)

    def _call(self, request: Request, tool: str, arguments: Mapping[str, Any]) -> Call:
        shown = request_id(request) or f"{self._prefix}-{next(self._numbers)}"
        return Call(
            tool=request.path_params.get("name", tool),  # an alias is to be told so
            arguments=arguments,
            id=shown,
            surface="http",
            traceparent=request.headers.get("traceparent"),
            meta=Meta(request_id=shown),
        )

    def _meta(self, call: Call) -> Meta:
        return Meta(request_id=call.id, repo=call.meta.repo)

    @contextmanager
    def _attended(self, call: Call, receive: Receive) -> Iterator[None]:
        """Withdraw the call when its client leaves while the block runs."""
        watching: asyncio.Task[None] | None = None

        def watch() -> None:
            nonlocal watching
            watching = loop.create_task(_gone(receive, call))

        loop = asyncio.get_running_loop()
        timer = loop.call_later(WATCH_AFTER, watch)
        self._open.add(call)
        try:
            yield
        finally:
            self._open.discard(call)
            timer.cancel()
            if watching is not None:
                watching.cancel()


async def _gone(receive: Receive, call: Call) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    log.info("client.gone id=%s tool=%s", call.id, call.tool)
    call.cancel()


def _shaped(tool: Tool, outcome: Outcome, call: Call, shape: Shape) -> Outcome:
    if isinstance(outcome, Done):
        return Done(shape(_payload(tool, outcome, call.meta), call))
    return outcome


def _payload(tool: Tool, outcome: Done, meta: Meta) -> Any:
    """What the tool answers on every surface, without the envelope that goes around it here."""
    if tool.payload is ENVELOPE:
        return outcome.result
    answer = tool.payload.seal(outcome, meta)
    return answer.body if answer.content is None else {"content": list(answer.content)}
