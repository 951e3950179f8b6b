"""The state of the index of a repository: what is in it, whether it is up to date, and building it."""

from time import monotonic
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from cleats.console.caller_console import CallerConsole, redirect_to
from cleats.console.rendering import build_link
from cleats.console.sign_in import read_next_path
from cleats.contract.errors import ToolError

MAX_LISTED_REPOSITORIES: Final = 50

REPOSITORY_CACHE_SECONDS: Final = 15.0
"""The time for which the list of repositories is reused: the report behind it looks at every index."""


async def describe_index(console: CallerConsole, repository: str) -> dict[str, Any] | None:
    """Return the state of an index, with the build that this console has started; None without the tool."""
    if not console.tools.has_tools("index_status"):
        return None
    try:
        status = await console.tools.run("index_status", repoPath=repository)
    except ToolError as error:
        return {"repository": repository, "error": error, "build": None, "can_build": False}
    index = status["index"]
    languages = sorted((index.get("languages") or {}).items(), key=lambda item: (-item[1], item[0]))
    return {
        "repository": repository,
        "error": None,
        "status": status,
        "exists": index["exists"],
        "is_stale": bool(status["freshness"] and status["freshness"]["stale"]),
        "languages": languages[:8],
        "build": console.background.find_running("build_index", repository),
        "latest_build": console.background.find_latest(repository),
        "can_build": console.tools.has_tools("build_index"),
    }


async def list_repositories(console: CallerConsole) -> list[str]:
    """Return the repositories that the caller can search: its own, and those with an index that it may name."""
    paths = [console.caller.default_repository]
    if not console.caller.can_name_others or not console.tools.has_tools("report_artifacts"):
        return paths
    if console.repository_cache is not None and monotonic() - console.repository_cache[0] < REPOSITORY_CACHE_SECONDS:
        return console.repository_cache[1]
    try:
        report = await console.tools.run("report_artifacts")
    except ToolError:
        return paths
    roots = [entry["root"] for entry in report.get("allRepos") or () if entry.get("rootExists")]
    paths += [root for root in roots[:MAX_LISTED_REPOSITORIES] if console.caller.allows_repository(root)]
    console.repository_cache = (monotonic(), list(dict.fromkeys(paths)))
    return console.repository_cache[1]


async def show_index(console: CallerConsole, request: Request) -> Response:
    """Show the state of one index, as a page or for a script."""
    console.require_area("search")
    repository = request.query_params.get("repo") or console.caller.default_repository
    values = {"area": "search", "title": "Index", "index": await describe_index(console, repository)}
    return console.render(request, "index_panel.html", values)


async def build_index(console: CallerConsole, request: Request) -> Response:
    """Start a build of the index, unless one is running."""
    console.require_area("search")
    form = await console.read_form(request)
    repository = form.get("repo") or console.caller.default_repository
    console.tools.registry.find("build_index")
    if console.background.find_running("build_index", repository) is None:
        arguments = {"repoPath": repository, "incremental": form.get("full") != "true"}
        console.background.start("build_index", arguments, repository)
    next_path = form.get("next") or build_link("/", ("repo", form.get("repo")))
    return redirect_to(read_next_path(next_path))


ROUTES = (
    ("GET", "/console/index", show_index),
    ("POST", "/console/index/build", build_index),
)
