"""The console of one caller: its tools, its background calls, and how its pages are rendered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from cleats.console.background_calls import BackgroundCalls
from cleats.console.rendering import page_response, render_template
from cleats.console.sessions import BrowserSessions, read_cookie
from cleats.console.tool_calls import SURFACE, ToolCaller
from cleats.contract.errors import ToolError
from cleats.runtime.recent_calls import FinishedCall, RecentCalls
from cleats.runtime.server_status import ServerStatus

if TYPE_CHECKING:
    from cleats.contract.compat import ContractReport

THEME_COOKIE: Final = "cleats_theme"
THEMES: Final = ("auto", "light", "dark")
FORM_TOKEN_FIELD: Final = "form_token"
FORM_TOKEN_HEADER: Final = "x-form-token"
MAX_FORM_FIELDS: Final = 500

FORM_OVERHEAD_FACTOR: Final = 3
"""The growth of JSON in a form, in which quotes and braces take three bytes each."""


@dataclass(frozen=True, slots=True)
class ContractCheck:
    """One comparison of contracts that the caller made here."""

    label: str
    checked_at: float
    report: "ContractReport"


class NavigationItem(NamedTuple):
    """One area of the console, shown to callers that have its tools."""

    name: str
    label: str
    path: str
    tools: Sequence[str]
    purpose: str
    """What a person does there, for the first page."""


NAVIGATION: Final = (
    NavigationItem("search", "Search", "/", ("search",), "Find code by what it does, by name or by message."),
    NavigationItem(
        "runs",
        "Runs",
        "/console/runs",
        ("launch_list_runs", "launch_get_status", "launch_get_artifact"),
        "Review documentation pages that Cleats wrote, and open their pull request.",
    ),
    NavigationItem(
        "findings",
        "Findings",
        "/console/findings",
        ("search", "triage_decision"),
        "Decide what to do about the reports of security scanners.",
    ),
    NavigationItem("skills", "Skills", "/console/skills", ("skill",), "Read the instructions that agents can load."),
    NavigationItem(
        "assets",
        "Assets",
        "/console/assets",
        ("list_schemas", "validate_asset", "diff_assets"),
        "Validate JSON files by their schemas and compare them.",
    ),
    NavigationItem("tools", "Tools", "/console/tools", (), "Call any tool from a form, and see what agents called."),
    NavigationItem("contract", "Contract", "/console/contract", (), "See what a new version changes for agents."),
)
"""Every area, in the order of the menu."""


@dataclass(frozen=True, kw_only=True)
class ConsoleCaller:
    """What the console knows about one caller."""

    name: str
    is_restricted: bool
    """True if the token has limits, so that it may not learn of the calls of others."""
    allows_repository: Callable[[str], bool]
    default_repository: str
    can_name_others: bool
    """True if the caller may name repositories other than the default one."""


@dataclass(frozen=True, kw_only=True)
class ServerFacts:
    """What all callers share."""

    sessions: BrowserSessions
    recent_calls: RecentCalls
    status: ServerStatus
    needs_token: bool
    body_limit: int
    search_flags: Mapping[str, str]
    """The flag of `cleats search` for each argument of the search tool that has one."""
    compare_contracts: Callable[[Mapping[str, Any], Mapping[str, Any]], "ContractReport"]
    """Compares two snapshots in child processes, with a time limit."""


class CallerConsole:
    """The state and the services of one caller's pages."""

    def __init__(self, caller: ConsoleCaller, tools: ToolCaller, server: ServerFacts) -> None:
        self.caller, self.tools, self.server = caller, tools, server
        self.background = BackgroundCalls(tools)
        self.last_check: ContractCheck | None = None
        self.repository_cache: tuple[float, list[str]] | None = None
        """The repositories that can be searched, and when they were listed."""
        self.new_decisions: dict[tuple[str, str], str] = {}
        """The decisions made here that the index may not have yet, by repository and finding."""

    def has_area(self, name: str) -> bool:
        """Return whether the caller has the tools of an area."""
        return any(item.name == name and self.tools.has_tools(*item.tools) for item in NAVIGATION)

    def require_area(self, name: str) -> None:
        """Answer "not found" if the caller does not have the tools of an area."""
        if not self.has_area(name):
            raise HTTPException(404)

    def render(
        self, request: Request, template: str, values: Mapping[str, Any] | None = None, *, status: int = 200
    ) -> Response:
        """Render a page or a fragment for this caller."""
        return page_response(render_template(template, {**self._page_values(request), **(values or {})}), status)

    def _page_values(self, request: Request) -> dict[str, Any]:
        return {
            "navigation": [item for item in NAVIGATION if self.tools.has_tools(*item.tools)],
            "caller": self.caller,
            "needs_token": self.server.needs_token,
            "theme": read_theme(request),
            "form_token": self.server.sessions.make_form_token(request.headers.get("cookie", "")),
            "has_tools": self.tools.has_tools,
            "current_url": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        }

    def render_error(self, request: Request, error: ToolError, *, status: int | None = None) -> Response:
        """Render the page of an error."""
        values = {"area": "", "title": error.code.name.replace("_", " ").capitalize(), "error": error}
        return self.render(request, "error.html", values, status=status or error.code.http)

    async def read_form(self, request: Request) -> "FormFields":
        """Read a form or the fields of a script, and check that one of our pages sent them.

        Raises:
            HTTPException: 403 without the token of the form, 413 if it is too large, 400 if it is not a form.
        """
        return await read_form(request, self.server.sessions, FORM_OVERHEAD_FACTOR * self.server.body_limit)

    async def list_recent_calls(self, *, with_own: bool) -> list[FinishedCall]:
        """Return the recent calls that this caller may see."""
        registry = self.tools.registry

        def is_visible(call: FinishedCall) -> bool:
            if self.caller.is_restricted and call.caller != self.caller.name:
                return False
            return registry.has_tool(call.tool) and (with_own or call.surface != SURFACE)

        return await self.server.recent_calls.list_calls(is_visible)


class FormFields:
    """The fields of a form."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._pairs = pairs

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a field."""
        return next((value for key, value in self._pairs if key == name), default)

    def get_all(self, name: str) -> list[str]:
        """Return every value of a field."""
        return [value for key, value in self._pairs if key == name]

    def has(self, name: str) -> bool:
        """Return whether a field was sent."""
        return any(key == name for key, _ in self._pairs)


async def read_form(request: Request, sessions: BrowserSessions, limit: int) -> FormFields:
    """Read the fields of a form that one of our pages sent."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise HTTPException(400, "The body must be a form.")
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise HTTPException(403, "This form was sent by another site.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise HTTPException(413, f"The form is over the limit of {limit} bytes.")
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=MAX_FORM_FIELDS
        )
    except ValueError:
        raise HTTPException(400, "The body is not a form.") from None
    fields = FormFields(pairs)
    form_token = request.headers.get(FORM_TOKEN_HEADER) or fields.get(FORM_TOKEN_FIELD)
    if not sessions.is_form_token(request.headers.get("cookie", ""), form_token):
        raise HTTPException(403, "This form is out of date. Go back, reload the page and try again.")
    return fields


def read_theme(request: Request) -> str:
    """Return the theme that the person chose."""
    theme = read_cookie(request.headers.get("cookie", ""), THEME_COOKIE)
    return theme if theme in THEMES else "auto"


def is_fragment_request(request: Request) -> bool:
    """Return whether a script asks for a part of a page."""
    return request.headers.get("x-fragment") == "1"


def redirect_to(path: str) -> Response:
    """Lead the browser to another page after a change."""
    return RedirectResponse(path, 303, {"cache-control": "no-store"})
