"""The endpoints of the API, each a row of `API_ROUTES` and a method here, and the tool calls behind them.

A client that disconnects cancels its call; the work is stopped and nothing is sent.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from secrets import token_hex
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive

from cleats.contract.errors import ToolError
from cleats.contract.outcome import Done, Outcome
from cleats.contract.payload import ENVELOPE, FLAT, LAUNCH, AnswerMeta, get_outcome_error
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.contract.versions import PROTOCOL_VERSION, SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime import capabilities
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import ProgressReport, ProgressReporter
from cleats.runtime.server_status import ServerStatus
from cleats.transports.http import monitoring, openapi, responses
from cleats.transports.http.caller_access import REPOSITORY_ARGUMENT, PathGuard
from cleats.transports.http.monitoring import HttpTraffic, ReadinessChecker
from cleats.transports.http.requests import parse_query, read_json_object, read_request_id
from cleats.transports.http.responses import ApiError, EmitEvent, EventStream
from cleats.transports.http.routes import API_ROUTES, SEARCH_TOOLS, STATUS_TOOLS

log = logging.getLogger(__name__)

WATCH_DELAY_SECONDS = 0.02
"""The delay before we watch for a disconnect: most calls are over by then."""

ShapeResult: TypeAlias = Callable[[Any, ToolCall], Mapping[str, Any]]
"""A function from a tool's payload to a route's `result`."""


class CallRunner:
    """The runner of every call that comes over a route."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._prefix = token_hex(4)
        self._call_numbers = count(1)

    async def answer_call(
        self,
        request: Request,
        tool: Tool,
        arguments: Mapping[str, Any],
        shape: ShapeResult = lambda payload, _call: payload,
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
        shape: ShapeResult = lambda payload, _call: payload,
        start: Mapping[str, Any] | None = None,
        *,
        with_progress: bool = True,
    ) -> EventStream:
        """Run a call as a stream of events: start, progress (unless it is switched off), result or error, done."""
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
        watcher: asyncio.Task[None] | None = None

        def start_watching() -> None:
            nonlocal watcher
            watcher = loop.create_task(_watch_disconnect(receive, call))

        loop = asyncio.get_running_loop()
        timer = loop.call_later(WATCH_DELAY_SECONDS, start_watching)
        try:
            yield
        finally:
            timer.cancel()
            if watcher is not None:
                watcher.cancel()


async def _watch_disconnect(receive: Receive, call: ToolCall) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    log.info("client.gone id=%s tool=%s", call.id, call.tool)
    call.cancel()


def _shape_outcome(tool: Tool, outcome: Outcome, call: ToolCall, shape: ShapeResult) -> Outcome:
    if not isinstance(outcome, Done):
        error = get_outcome_error(outcome)
        if error is not None and tool.payload in (FLAT, LAUNCH):
            error.details = _collect_failure_facts(tool, error, call.meta)
        return outcome
    if tool.payload is ENVELOPE:
        return Done(shape(outcome.result, call))
    answer = tool.payload.render_outcome(outcome, call.meta)
    return Done(shape(answer.body if answer.content is None else {"content": list(answer.content)}, call))


def _collect_failure_facts(tool: Tool, error: ToolError, meta: AnswerMeta) -> dict[str, Any]:
    """Return the fields of a failure in the toolset's own shape that the envelope has no place for."""
    body = tool.payload.render_error(error, meta).body or {}
    facts = {name: value for name, value in body.items() if name not in {"ok", "error"}}
    if tool.payload is LAUNCH:
        facts |= {**body["error"]["details"], "retryable": error.retryable}
        facts.pop("hint", None)  # the envelope has it
    return facts


@dataclass(frozen=True, kw_only=True)
class HttpApi:
    """The endpoints and the state that they share."""

    registry: Registry
    vitals: ServerStatus
    traffic: HttpTraffic
    runner: CallRunner
    path_guard: PathGuard
    body_limit: int
    secured: bool
    readiness: ReadinessChecker

    async def health(self, request: Request) -> Response:
        return responses.success_response({"uptimeMs": round(self.vitals.uptime * 1000)}, read_request_id(request))

    async def ready(self, request: Request) -> Response:
        try:
            await self.readiness.check()
        except ToolError as error:
            raise ApiError(error) from None
        return responses.success_response({"ready": True}, read_request_id(request))

    async def capabilities(self, request: Request) -> Response:
        result = {
            "schemaVersion": SCHEMA_VERSION,
            "toolingVersion": TOOLING_VERSION,
            "protocolVersion": PROTOCOL_VERSION,
            "transport": "http",
            "capabilities": capabilities.detect_capabilities(),
            "tools": {tool.name: tool.version for tool in self.registry},
        }
        return responses.success_response(result, read_request_id(request))

    async def metrics(self, _request: Request) -> Response:
        vitals, traffic = await self.vitals.collect(), await self.traffic.collect()
        text = monitoring.render_metrics(vitals, traffic, self.registry)
        return Response(text, media_type=monitoring.MEDIA_TYPE)

    async def openapi(self, _request: Request) -> Response:
        document = openapi.build_document(self.registry, secured=self.secured)
        return Response(openapi.encode_document(document), media_type=openapi.MEDIA_TYPE)

    async def docs(self, _request: Request) -> Response:
        return HTMLResponse(openapi.render_page(self.registry, API_ROUTES), headers=openapi.PAGE_HEADERS)

    async def tools(self, request: Request) -> Response:
        definitions = [openapi.describe_tool(self.registry, tool) for tool in self.registry]
        return responses.success_response({"tools": definitions}, read_request_id(request))

    async def call(self, request: Request) -> Response:
        tool = await self._find_tool(request, request.path_params["name"])
        return await self.runner.answer_call(request, tool, await read_json_object(request, self.body_limit))

    async def call_stream(self, request: Request) -> EventStream:
        tool = await self._find_tool(request, request.path_params["name"])
        arguments = await read_json_object(request, self.body_limit)
        self._check_arguments(tool, arguments)
        return self.runner.stream_call(request, tool, arguments, start={"tool": tool.name})

    async def search(self, request: Request) -> Response:
        return await self._answer_route(request, SEARCH_TOOLS, "search")

    async def search_stream(self, request: Request) -> EventStream:
        return await self._stream_route(request, SEARCH_TOOLS, "search")

    async def status(self, request: Request) -> Response:
        return await self._answer_route(request, STATUS_TOOLS, "status")

    async def status_stream(self, request: Request) -> EventStream:
        return await self._stream_route(request, STATUS_TOOLS, "status", repo=True)

    async def _answer_route(self, request: Request, names: Sequence[str], key: str) -> Response:
        tool = await self._find_tool(request, *names)
        arguments = await self._read_arguments(request, tool)
        return await self.runner.answer_call(request, tool, arguments, self._build_shaper(key))

    async def _stream_route(
        self, request: Request, names: Sequence[str], key: str, *, repo: bool = False
    ) -> EventStream:
        tool = await self._find_tool(request, *names)
        arguments = await self._read_arguments(request, tool)
        self._check_arguments(tool, arguments)
        start = {"repo": self._resolve_repository(arguments)} if repo else None
        # The API has no progress event in the stream of a status.
        return self.runner.stream_call(request, tool, arguments, self._build_shaper(key), start, with_progress=not repo)

    async def _find_tool(self, request: Request, *names: str) -> Tool:
        for name in names:
            if (tool := self.registry.get(name)) is not None:
                return tool
        raise ApiError(await self.runner.record_missing_tool(request, names[0]))

    async def _read_arguments(self, request: Request, tool: Tool) -> Mapping[str, Any]:
        if request.method == "POST":
            arguments = await read_json_object(request, self.body_limit)
        else:
            arguments = parse_query(request, tool.input)
            if "q" in arguments and "query" not in arguments:
                arguments["query"] = arguments.pop("q")
        if "repo" in arguments and REPOSITORY_ARGUMENT not in arguments:
            arguments[REPOSITORY_ARGUMENT] = arguments.pop("repo")
        return arguments

    def _check_arguments(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments before a stream starts: a client sees 400 and 403 in the status, as without a stream."""
        try:
            self.path_guard.check_arguments(tool.bind(arguments))
        except ToolError as error:
            raise ApiError(error) from None

    def _build_shaper(self, name: str) -> ShapeResult:
        def shape_result(payload: Any, call: ToolCall) -> Mapping[str, Any]:
            return {"repo": call.meta.repo or self._resolve_repository(call.arguments), name: payload}

        return shape_result

    def _resolve_repository(self, arguments: Mapping[str, Any]) -> str:
        path = arguments.get(REPOSITORY_ARGUMENT)
        return str(self.path_guard.repo if path is None else self.path_guard.resolve_repository(path))
