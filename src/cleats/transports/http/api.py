"""The routes of the API. Each is a row of `ROUTES` and a method here."""

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
from cleats.runtime.call import Call
from cleats.runtime.vitals import Vitals
from cleats.transports.http import metrics, openapi, page, replies
from cleats.transports.http.calls import Caller, Shape, as_it_is
from cleats.transports.http.fence import REPOSITORY, Fence
from cleats.transports.http.metrics import Traffic
from cleats.transports.http.readiness import Readiness
from cleats.transports.http.replies import Refusal
from cleats.transports.http.requests import json_object, query, request_id
from cleats.transports.http.rows import ROUTES, SEARCH, STATUS
from cleats.transports.http.sse import Stream


@dataclass(frozen=True, kw_only=True)
class Api:
    """What the endpoints share."""

    registry: Registry
    vitals: Vitals
    traffic: Traffic
    caller: Caller
    fence: Fence
    body_limit: int
    secured: bool
    readiness: Readiness

    async def health(self, request: Request) -> Response:
        uptime = round(self.vitals.uptime * 1000)
        return replies.done({"uptimeMs": uptime}, request_id(request))

    async def ready(self, request: Request) -> Response:
        try:
            await self.readiness.check()
        except ToolError as error:
            raise Refusal(error) from None
        return replies.done({"ready": True}, request_id(request))

    async def capabilities(self, request: Request) -> Response:
        result = {
            "schemaVersion": SCHEMA_VERSION,
            "toolingVersion": TOOLING_VERSION,
            "protocolVersion": PROTOCOL_VERSION,
            "transport": "http",
            "capabilities": capabilities.found(),
            "tools": {tool.name: tool.version for tool in self.registry},
        }
        return replies.done(result, request_id(request))

    async def metrics(self, _request: Request) -> Response:
        text = metrics.text(self.vitals, self.traffic, self.registry)
        return Response(text, media_type=metrics.MEDIA_TYPE)

    async def openapi(self, _request: Request) -> Response:
        document = openapi.document(self.registry, secured=self.secured)
        return Response(openapi.encoded(document), media_type=openapi.MEDIA_TYPE)

    async def docs(self, _request: Request) -> Response:
        return HTMLResponse(page.html(self.registry, ROUTES), headers=page.HEADERS)

    async def tools(self, request: Request) -> Response:
        listed = [openapi.definition(self.registry, tool) for tool in self.registry]
        return replies.done({"tools": listed}, request_id(request))

    async def call(self, request: Request) -> Response:
        tool = await self._tool(request, request.path_params["name"])
        arguments = await json_object(request, self.body_limit)
        return await self.caller.answer(request, tool, arguments)

    async def call_stream(self, request: Request) -> Stream:
        tool = await self._tool(request, request.path_params["name"])
        arguments = await json_object(request, self.body_limit)
        return self._stream(request, tool, arguments, start={"tool": tool.name})

    async def search(self, request: Request) -> Response:
        tool = await self._tool(request, *SEARCH)
        arguments = await self._named(request, tool)
        return await self.caller.answer(request, tool, arguments, self._shape("search"))

    async def search_stream(self, request: Request) -> Stream:
        tool = await self._tool(request, *SEARCH)
        arguments = await self._named(request, tool)
        return self._stream(request, tool, arguments, self._shape("search"))

    async def status(self, request: Request) -> Response:
        tool = await self._tool(request, *STATUS)
        arguments = await self._named(request, tool)
        return await self.caller.answer(request, tool, arguments, self._shape("status"))

    async def status_stream(self, request: Request) -> Stream:
        tool = await self._tool(request, *STATUS)
        arguments = await self._named(request, tool)
        return self._stream(request, tool, arguments, self._shape("status"), repo=True)

    async def _tool(self, request: Request, *names: str) -> Tool:
        """The first of these tools that is served.

        Raises:
            Refusal: 404.
        """
        for name in names:
            if self.registry.has(name):
                return self.registry.find(name)
        raise Refusal(await self.caller.missed(request, names[0]))

    async def _named(self, request: Request, tool: Tool) -> Mapping[str, Any]:
        """The arguments of a route that stands for a tool, under the route's names for them."""
        if request.method == "POST":
            given = await json_object(request, self.body_limit)
        else:
            given = query(request, tool.input)
            if "q" in given and "query" not in given:
                given["query"] = given.pop("q")
        if "repo" in given and REPOSITORY not in given:
            given[REPOSITORY] = given.pop("repo")
        return given

    def _stream(
        self,
        request: Request,
        tool: Tool,
        arguments: Mapping[str, Any],
        shape: Shape = as_it_is,
        *,
        start: Mapping[str, Any] | None = None,
        repo: bool = False,
    ) -> Stream:
        """A stream, once it is known that the tool will take the arguments.

        Raises:
            Refusal: 400 or 403; a client sees it in the status, as without a stream.
        """
        try:
            self.fence.passed(tool.bind(arguments))
        except ToolError as error:
            raise Refusal(error) from None
        if repo:  # the stream of a status, for which the API has no event of progress
            start = {"repo": self._repository(arguments)}
        return self.caller.stream(request, tool, arguments, shape, start, steps=not repo)

    def _shape(self, name: str) -> Shape:
        def shape(payload: Any, call: Call) -> Mapping[str, Any]:
            return {"repo": call.meta.repo or self._repository(call.arguments), name: payload}

        return shape

    def _repository(self, arguments: Mapping[str, Any]) -> str:
        """The repository that a call is about, once the fence has let it pass."""
        given = arguments.get(REPOSITORY)
        return str(self.fence.repo if given is None else self.fence.find(given))

    def endpoints(self) -> Sequence[Any]:
        """Every row with its method."""
        return [(row, getattr(self, row.endpoint)) for row in ROUTES]
