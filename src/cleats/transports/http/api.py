"""The endpoints of the API. Each is a row of `API_ROUTES` and a method here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from cleats.contract.errors import ToolError
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.contract.versions import PROTOCOL_VERSION, SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime import capabilities
from cleats.runtime.call import ToolCall
from cleats.runtime.server_status import ServerStatus
from cleats.transports.http import docs_page, monitoring, openapi, responses
from cleats.transports.http.calls import CallRunner, ShapeResult, keep_payload
from cleats.transports.http.monitoring import HttpTraffic, ReadinessChecker
from cleats.transports.http.path_access import REPOSITORY_ARGUMENT, PathGuard
from cleats.transports.http.requests import parse_query, read_json_object, read_request_id
from cleats.transports.http.responses import ApiError, EventStream
from cleats.transports.http.routes import API_ROUTES, SEARCH_TOOLS, STATUS_TOOLS


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
        uptime = round(self.vitals.uptime * 1000)
        return responses.success_response({"uptimeMs": uptime}, read_request_id(request))

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
        text = monitoring.render_metrics(self.vitals, self.traffic, self.registry)
        return Response(text, media_type=monitoring.MEDIA_TYPE)

    async def openapi(self, _request: Request) -> Response:
        document = openapi.build_document(self.registry, secured=self.secured)
        return Response(openapi.encode_document(document), media_type=openapi.MEDIA_TYPE)

    async def docs(self, _request: Request) -> Response:
        return HTMLResponse(docs_page.render_page(self.registry, API_ROUTES), headers=docs_page.PAGE_HEADERS)

    async def tools(self, request: Request) -> Response:
        definitions = [openapi.describe_tool(self.registry, tool) for tool in self.registry]
        return responses.success_response({"tools": definitions}, read_request_id(request))

    async def call(self, request: Request) -> Response:
        tool = await self._find_tool(request, request.path_params["name"])
        arguments = await read_json_object(request, self.body_limit)
        return await self.runner.answer_call(request, tool, arguments)

    async def call_stream(self, request: Request) -> EventStream:
        tool = await self._find_tool(request, request.path_params["name"])
        arguments = await read_json_object(request, self.body_limit)
        return self._start_stream(request, tool, arguments, start={"tool": tool.name})

    async def search(self, request: Request) -> Response:
        tool = await self._find_tool(request, *SEARCH_TOOLS)
        arguments = await self._read_arguments(request, tool)
        return await self.runner.answer_call(request, tool, arguments, self._build_shaper("search"))

    async def search_stream(self, request: Request) -> EventStream:
        tool = await self._find_tool(request, *SEARCH_TOOLS)
        arguments = await self._read_arguments(request, tool)
        return self._start_stream(request, tool, arguments, self._build_shaper("search"))

    async def status(self, request: Request) -> Response:
        tool = await self._find_tool(request, *STATUS_TOOLS)
        arguments = await self._read_arguments(request, tool)
        return await self.runner.answer_call(request, tool, arguments, self._build_shaper("status"))

    async def status_stream(self, request: Request) -> EventStream:
        tool = await self._find_tool(request, *STATUS_TOOLS)
        arguments = await self._read_arguments(request, tool)
        return self._start_stream(request, tool, arguments, self._build_shaper("status"), repo=True)

    async def _find_tool(self, request: Request, *names: str) -> Tool:
        """Return the first of these tools that is served.

        Raises:
            ApiError: 404.
        """
        for name in names:
            if self.registry.has_tool(name):
                return self.registry.find(name)
        raise ApiError(await self.runner.record_missing_tool(request, names[0]))

    async def _read_arguments(self, request: Request, tool: Tool) -> Mapping[str, Any]:
        """Read the arguments of a route that calls a tool, and expand the route's short names."""
        if request.method == "POST":
            arguments = await read_json_object(request, self.body_limit)
        else:
            arguments = parse_query(request, tool.input)
            if "q" in arguments and "query" not in arguments:
                arguments["query"] = arguments.pop("q")
        if "repo" in arguments and REPOSITORY_ARGUMENT not in arguments:
            arguments[REPOSITORY_ARGUMENT] = arguments.pop("repo")
        return arguments

    def _start_stream(
        self,
        request: Request,
        tool: Tool,
        arguments: Mapping[str, Any],
        shape: ShapeResult = keep_payload,
        *,
        start: Mapping[str, Any] | None = None,
        repo: bool = False,
    ) -> EventStream:
        """Start a stream after checking that the tool accepts the arguments.

        Raises:
            ApiError: 400 or 403; a client sees it in the status, as without a stream.
        """
        try:
            self.path_guard.check_arguments(tool.bind(arguments))
        except ToolError as error:
            raise ApiError(error) from None
        if repo:  # the stream of a status, for which the API has no progress event
            start = {"repo": self._resolve_repository(arguments)}
        return self.runner.stream_call(request, tool, arguments, shape, start, with_progress=not repo)

    def _build_shaper(self, name: str) -> ShapeResult:
        def shape_result(payload: Any, call: ToolCall) -> Mapping[str, Any]:
            return {"repo": call.meta.repo or self._resolve_repository(call.arguments), name: payload}

        return shape_result

    def _resolve_repository(self, arguments: Mapping[str, Any]) -> str:
        """Return the repository of a call that the path guard has accepted."""
        path = arguments.get(REPOSITORY_ARGUMENT)
        return str(self.path_guard.repo if path is None else self.path_guard.resolve_repository(path))

    def list_endpoints(self) -> Sequence[Any]:
        """Return every route with its method."""
        return [(row, getattr(self, row.endpoint)) for row in API_ROUTES]
