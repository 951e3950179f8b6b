"""The application of one caller: its routes, and what becomes of errors."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from cleats.console.caller_console import CallerConsole, redirect_to
from cleats.console.pages import (
    activity,
    assets,
    calls,
    code,
    contract,
    findings,
    indexes,
    run_pages,
    runs,
    search,
    skills,
    tools,
)
from cleats.contract.errors import ErrorCode, ToolError

log = logging.getLogger(__name__)

PageHandler: TypeAlias = Callable[[CallerConsole, Request], Awaitable[Response]]

PAGE_ROUTES: tuple[tuple[str, str, PageHandler], ...] = (
    *search.ROUTES,
    *indexes.ROUTES,
    *code.ROUTES,
    *runs.ROUTES,
    *run_pages.ROUTES,
    *findings.ROUTES,
    *skills.ROUTES,
    *assets.ROUTES,
    *tools.ROUTES,
    *calls.ROUTES,
    *activity.ROUTES,
    *contract.ROUTES,
)
"""Method, path and handler of every page and stream."""


def build_caller_app(console: CallerConsole) -> ASGIApp:
    """Build the application of one caller."""

    def bind_handler(handler: PageHandler) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await handler(console, request)

        return answer

    async def show_tool_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, ToolError)  # noqa: S101 - for the type checker
        return console.render_error(request, error)

    async def show_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - for the type checker
        if error.status_code in {404, 405}:
            return console.render_error(request, ToolError(ErrorCode.NOT_FOUND, "There is no such page."), status=404)
        code = ErrorCode.FORBIDDEN if error.status_code == 403 else ErrorCode.INVALID_REQUEST
        return console.render_error(request, ToolError(code, error.detail), status=error.status_code)

    async def show_crash(request: Request, _crash: Exception) -> Response:
        error = ToolError(
            ErrorCode.INTERNAL, "The page could not be rendered.", hint="The server's log has the traceback."
        )
        return console.render_error(request, error, status=500)

    async def sign_out(request: Request) -> Response:
        await console.read_form(request)
        sessions = console.server.sessions
        sessions.close_session(request.headers.get("cookie", ""))
        response = redirect_to("/")
        response.delete_cookie(sessions.cookie_name, path="/", httponly=True, samesite="strict")
        return response

    routes = [Route(path, bind_handler(handler), methods=[method]) for method, path, handler in PAGE_ROUTES]
    routes.append(Route("/console/sign-out", sign_out, methods=["POST"]))
    handlers = {ToolError: show_tool_error, HTTPException: show_http_error, Exception: show_crash}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return app
