"""The pages for everybody: signing in with a token, and the files that all pages use."""

from collections.abc import Callable
from math import ceil
from typing import Any, Final
from urllib.parse import quote, urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from cleats.console.caller_console import read_form, read_theme, redirect_to
from cleats.console.rendering import page_response, render_template
from cleats.console.sessions import SESSION_SECONDS, BrowserSessions
from cleats.console.static_files import STATIC_PATH, serve_static_file
from cleats.transports.http.tokens import RateLimiter

SIGN_IN_PATH: Final = "/console/sign-in"

FAILED_SIGN_INS_PER_MINUTE: Final = 30
"""The wrong tokens that are answered in a minute, from everybody together; a person never gets there."""


def build_public_app(sessions: BrowserSessions, match_token: Callable[[str], str | None], body_limit: int) -> ASGIApp:
    """Build the application for requests without a session; `match_token` returns the name of a valid token."""
    limiter = RateLimiter(FAILED_SIGN_INS_PER_MINUTE)

    def render_sign_in(request: Request, message: str = "", status: int = 200, next_path: str = "") -> Response:
        values: dict[str, Any] = {
            "theme": read_theme(request),
            "form_token": sessions.make_form_token(request.headers.get("cookie", "")),
            "next": read_next_path(next_path or request.query_params.get("next", "")),
            "message": message,
        }
        return page_response(render_template("sign_in.html", values), status)

    async def show_sign_in(request: Request) -> Response:
        return render_sign_in(request)

    async def sign_in(request: Request) -> Response:
        form = await read_form(request, sessions, body_limit)
        name = match_token(form.get("token").strip())
        if name is None:
            if wait := limiter.take():
                message = f"Too many wrong tokens. Try again in {ceil(wait)} s."
                return render_sign_in(request, message, 429, form.get("next"))
            return render_sign_in(request, "Invalid token.", 401, form.get("next"))
        response = redirect_to(read_next_path(form.get("next")))
        # The server speaks plain HTTP; behind a proxy with TLS, the browser says so in Origin.
        is_secure = request.headers.get("origin", "").startswith("https://")
        response.set_cookie(
            sessions.cookie_name,
            sessions.open_session(name),
            max_age=SESSION_SECONDS,
            path="/",
            httponly=True,
            samesite="strict",
            secure=is_secure,
        )
        return response

    async def show_fault(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - for the type checker
        if request.url.path.startswith(f"{STATIC_PATH}/"):
            return Response("There is no such file.", 404, media_type="text/plain")
        if error.status_code in {404, 405}:
            if (address := find_sign_in_address(request)) is not None:
                return redirect_to(address)
            return render_sign_in(request, "Your session has ended. Sign in again.", 401)
        return render_sign_in(request, error.detail, error.status_code)

    routes = [
        Route(SIGN_IN_PATH, show_sign_in, methods=["GET"]),
        Route(SIGN_IN_PATH, sign_in, methods=["POST"]),
        Route(f"{STATIC_PATH}/{{version}}/{{name}}", serve_static_file, methods=["GET"]),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: show_fault})
    app.router.redirect_slashes = False
    return app


def find_sign_in_address(request: Request) -> str | None:
    """Return where a page leads that needs a session, or None if a browser cannot come back to it."""
    if request.method not in {"GET", "HEAD"} or request.headers.get("x-fragment") == "1":
        return None
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return SIGN_IN_PATH if path == "/" else f"{SIGN_IN_PATH}?next={quote(path, safe='')}"


def read_next_path(text: str) -> str:
    """Return a path of this server to go on to; anything else leads to the first page."""
    parts = urlsplit(text)
    is_local = not parts.scheme and not parts.netloc and text.startswith("/") and not text.startswith(("//", "/\\"))
    return text if is_local and "\\" not in text and text.isprintable() else "/"
