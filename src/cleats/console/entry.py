"""The entry of the console: builds the applications that the guard of the HTTP API hands requests to.

Nothing heavy is imported here: templates and lexers are loaded in a thread once the server listens, so that the first
page does not wait for them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from starlette.types import ASGIApp

from cleats.console.application import build_caller_app
from cleats.console.caller_console import CallerConsole, ConsoleCaller, ServerFacts
from cleats.console.sessions import BrowserSessions
from cleats.console.sign_in import SIGN_IN_PATH, build_public_app
from cleats.console.static_files import STATIC_PATH
from cleats.console.tool_calls import ToolCaller
from cleats.contract.errors import ToolError
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.recent_calls import RecentCalls
from cleats.runtime.server_status import ServerStatus
from cleats.transports.http.caller_access import CallerAccess
from cleats.transports.http.guard import ConsoleEntry
from cleats.transports.http.routes import CONSOLE_PATH
from cleats.transports.http.tokens import ANONYMOUS_TOKEN, AccessToken, match_bearer_token

if TYPE_CHECKING:
    from cleats.contract.compat import ContractReport


FIRST_VIEW_TEMPLATES: Final = (
    "base.html",
    "macros.html",
    "search.html",
    "search_home.html",
    "index_panel.html",
    "search_results.html",
)
"""The templates of the search page, with and without results."""


def build_console(
    accesses: Sequence[CallerAccess],
    dispatchers: Sequence[Dispatcher],
    *,
    port: int,
    status: ServerStatus,
    recent_calls: RecentCalls,
    body_limit: int,
    search_flags: Mapping[str, str],
    compare_contracts: Callable[[Mapping[str, Any], Mapping[str, Any]], "ContractReport"],
) -> ConsoleEntry:
    """Build the pages of every caller."""
    tokens = [access.token for access in accesses if access.token is not ANONYMOUS_TOKEN]
    sessions = BrowserSessions(port)
    server = ServerFacts(
        sessions=sessions,
        recent_calls=recent_calls,
        status=status,
        needs_token=bool(tokens),
        body_limit=body_limit,
        search_flags=search_flags,
        compare_contracts=compare_contracts,
    )
    consoles = {
        access.token.name: CallerConsole(_describe_caller(access), ToolCaller(dispatcher), server)
        for access, dispatcher in zip(accesses, dispatchers, strict=True)
    }

    def stop() -> None:
        for console in consoles.values():
            console.background.stop()
            console.tools.cancel_all()

    apps: dict[str, ASGIApp] = {name: build_caller_app(console) for name, console in consoles.items()}
    return ConsoleEntry(
        owns_request=owns_request,
        find_session=sessions.find_caller,
        apps=apps,
        public_app=build_public_app(sessions, _build_matcher(tokens), body_limit),
        is_public=lambda path: path == SIGN_IN_PATH or path.startswith(f"{STATIC_PATH}/"),
        stop=stop,
    )


def prepare_first_view() -> None:
    """Load what the search page needs, which takes ten times the CPU of the page itself."""
    from cleats.console.highlighting import highlight_lines  # noqa: PLC0415 - heavy
    from cleats.console.rendering import load_environment  # noqa: PLC0415

    environment = load_environment()
    for name in FIRST_VIEW_TEMPLATES:
        environment.get_template(name)
    highlight_lines("pass", language="python")


def owns_request(path: str, accept: str) -> bool:
    """Return whether the console answers a request: every path below `/console/`, and `/` for browsers."""
    return path.startswith(f"{CONSOLE_PATH}/") or (path == "/" and "text/html" in accept)


def _describe_caller(access: CallerAccess) -> ConsoleCaller:
    token, path_guard = access.token, access.path_guard

    def allows_repository(path: str) -> bool:
        try:
            path_guard.resolve_repository(path)
        except ToolError:
            return False
        return True

    return ConsoleCaller(
        name=token.name,
        is_restricted=token.toolsets is not None or token.repositories is not None,
        allows_repository=allows_repository,
        default_repository=str(path_guard.default_root or path_guard.repo),
        can_name_others=bool(path_guard.roots),
    )


def _build_matcher(tokens: Sequence[AccessToken]) -> Callable[[str], str | None]:
    def match_token(secret: str) -> str | None:
        token = match_bearer_token(tokens, f"Bearer {secret.encode().decode('latin-1')}")
        return None if token is None else token.name

    return match_token
