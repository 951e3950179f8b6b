"""Tool calls for routes: one answer or a stream of events.

A client that disconnects cancels its call; the work is stopped and nothing is sent.
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
from cleats.contract.payload import ENVELOPE, AnswerMeta, get_outcome_error
from cleats.contract.tools import Tool
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import ProgressReport, ProgressReporter
from cleats.transports.http import responses
from cleats.transports.http.requests import read_request_id
from cleats.transports.http.responses import EmitEvent, EventStream

log = logging.getLogger(__name__)

WATCH_DELAY_SECONDS = 0.02
"""The delay before we watch for a disconnect: most calls are over by then."""

ShapeResult: TypeAlias = Callable[[Any, ToolCall], Mapping[str, Any]]
"""A function from a tool's payload to a route's `result`."""


def keep_payload(payload: Any, _call: ToolCall) -> Mapping[str, Any]:
    """Return the tool's payload unchanged."""
    result: Mapping[str, Any] = payload
    return result


class CallRunner:
    """The runner of every call that comes over a route."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._open_calls: set[ToolCall] = set()
        self._prefix = token_hex(4)
        self._call_numbers = count(1)

    def cancel_all(self) -> None:
        """Cancel every call that still runs."""
        for call in self._open_calls:
            call.cancel()

    async def answer_call(
        self, request: Request, tool: Tool, arguments: Mapping[str, Any], shape: ShapeResult = keep_payload
    ) -> Response:
        """Run a call and return its outcome as a response."""
        call = self._create_call(request, tool.name, arguments)
        with self._cancel_on_disconnect(call, request.receive):
            outcome = await self._dispatcher.dispatch(call)
        return responses.outcome_response(_shape_outcome(tool, outcome, call, shape), call.meta)

    async def record_missing_tool(self, request: Request, name: str) -> ToolError:
        """Record a call of an unknown tool like any other, and return its error."""
        call = self._create_call(request, name, {})
        error = get_outcome_error(await self._dispatcher.dispatch(call))
        assert error is not None  # noqa: S101 - there is no such tool
        return error

    def stream_call(
        self,
        request: Request,
        tool: Tool,
        arguments: Mapping[str, Any],
        shape: ShapeResult = keep_payload,
        start: Mapping[str, Any] | None = None,
        *,
        with_progress: bool = True,
    ) -> EventStream:
        """Run a call as a stream of events: start, progress, result or error, done.

        Without `with_progress` there are no progress events.
        """
        call = self._create_call(request, tool.name, arguments)

        async def produce_events(emit: EmitEvent, receive: Receive) -> None:
            async def send_progress(report: ProgressReport) -> None:
                step = {"phase": report.phase, "message": report.message}
                await emit("progress", responses.encode_outcome(Done(step), self._build_meta(call)))

            await emit("start", responses.encode_outcome(Done(dict(start or {})), self._build_meta(call)))
            call.reporter = ProgressReporter(send_progress) if with_progress else None
            with self._cancel_on_disconnect(call, receive):
                outcome = await self._dispatcher.dispatch(call)
            data, error = responses.seal_outcome(_shape_outcome(tool, outcome, call, shape), call.meta)
            await emit("result" if error is None else "error", data)
            await emit("done", responses.encode_outcome(Done({}), self._build_meta(call)))

        return EventStream(produce_events)

    def _create_call(self, request: Request, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
        call_id = read_request_id(request) or f"{self._prefix}-{next(self._call_numbers)}"
        return ToolCall(
            tool=request.path_params.get("name", tool),  # keeps an alias, which the answer reports as deprecated
            arguments=arguments,
            id=call_id,
            surface="http",
            traceparent=request.headers.get("traceparent"),
            meta=AnswerMeta(request_id=call_id),
        )

    def _build_meta(self, call: ToolCall) -> AnswerMeta:
        return AnswerMeta(request_id=call.id, repo=call.meta.repo)

    @contextmanager
    def _cancel_on_disconnect(self, call: ToolCall, receive: Receive) -> Iterator[None]:
        """Cancel the call if its client disconnects while the block runs."""
        watcher: asyncio.Task[None] | None = None

        def start_watching() -> None:
            nonlocal watcher
            watcher = loop.create_task(_watch_disconnect(receive, call))

        loop = asyncio.get_running_loop()
        timer = loop.call_later(WATCH_DELAY_SECONDS, start_watching)
        self._open_calls.add(call)
        try:
            yield
        finally:
            self._open_calls.discard(call)
            timer.cancel()
            if watcher is not None:
                watcher.cancel()


async def _watch_disconnect(receive: Receive, call: ToolCall) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    log.info("client.gone id=%s tool=%s", call.id, call.tool)
    call.cancel()


def _shape_outcome(tool: Tool, outcome: Outcome, call: ToolCall, shape: ShapeResult) -> Outcome:
    if isinstance(outcome, Done):
        return Done(shape(_extract_payload(tool, outcome, call.meta), call))
    return outcome


def _extract_payload(tool: Tool, outcome: Done, meta: AnswerMeta) -> Any:
    """Return the tool's payload as on every surface, without the envelope of this one."""
    if tool.payload is ENVELOPE:
        return outcome.result
    answer = tool.payload.render_outcome(outcome, meta)
    return answer.body if answer.content is None else {"content": list(answer.content)}
