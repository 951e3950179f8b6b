"""The API of one caller as an ASGI application: the routes, and what happens to what they raise."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from cleats.contract.errors import ErrorCode, ToolError
from cleats.transports.http.api import Api
from cleats.transports.http.replies import Refusal, missing, refused
from cleats.transports.http.requests import request_id
from cleats.transports.http.rows import MCP_PATH
from cleats.transports.http.toolset_routes import brought, endpoint


def application(api: Api, mcp: ASGIApp | None = None, caller: str = "") -> ASGIApp:
    """Everything that one caller has, behind one callable; `mcp` answers at `/mcp`."""
    routes: list[BaseRoute] = [
        Route(row.path, answers, methods=row.methods) for row, answers in api.endpoints()
    ]
    routes += [
        Route(each.path, endpoint(each, limit=api.body_limit, caller=caller), methods=[each.method])
        for each in brought(api.registry.toolsets)
    ]
    routes.append(Route("/", _home, methods=["GET"]))
    if mcp is not None:
        routes.append(Route(MCP_PATH, mcp))
    inner = Starlette(
        routes=routes,
        exception_handlers={Refusal: _refused, HTTPException: _missing, Exception: _crashed},
    )
    inner.router.redirect_slashes = False
    return inner


async def _home(_request: Request) -> Response:
    """For who types the address of the server and nothing more."""
    return RedirectResponse("/docs")


async def _refused(request: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)  # noqa: S101 - for the type checker
    return refused(refusal, request_id(request))


async def _missing(request: Request, _error: Exception) -> Response:
    """No such route, or not for this method: to the outside they are the same."""
    return refused(missing(request.method, request.url.path), request_id(request))


async def _crashed(request: Request, crash: Exception) -> Response:
    details = {"cause_class": type(crash).__name__}
    error = ToolError(ErrorCode.INTERNAL, "The request failed unexpectedly.", details=details)
    return refused(Refusal(error), request_id(request))
