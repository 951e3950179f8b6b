"""The first page: one box, results while typing, filters as chips, and the state of the index."""

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from cleats.console.caller_console import CallerConsole, is_fragment_request, redirect_to
from cleats.console.pages.indexes import describe_index, list_repositories
from cleats.console.rendering import build_link
from cleats.console.search_query import (
    MODES,
    SearchQuery,
    group_filter_options,
    list_filter_options,
    parse_search,
)
from cleats.console.search_results import SearchHit, collect_hits
from cleats.contract.errors import ToolError

EXAMPLE_QUERIES = ("where is the configuration read", "parse request body", "retry with backoff")
"""Questions for somebody who has not searched yet."""


async def show_search(console: CallerConsole, request: Request) -> Response:
    """Show the search page, or only its results for a script."""
    if not console.has_area("search"):
        return redirect_to("/console/tools")
    tool = console.tools.registry.find("search")
    query = parse_search(request.query_params, tool, console.server.search_flags)
    if "filter" in request.query_params and not is_fragment_request(request):
        return redirect_to(build_link("/", *query.list_pairs()))
    started_at = perf_counter()
    repositories = query.repositories or (console.caller.default_repository,)
    hits, problems = await _search_repositories(console, query, repositories)
    values: dict[str, Any] = {
        "area": "search",
        "title": query.words or "Search",
        "query": query,
        "hits": hits,
        "problems": problems,
        "builds": {repository: console.background.find_latest(repository) for repository, _ in problems},
        "has_several": len(repositories) > 1,
        "elapsed_ms": (perf_counter() - started_at) * 1000,
        "modes": MODES,
        "agent_call": query.format_agent_call(tool),
        "command": query.format_command(),
    }
    if is_fragment_request(request):
        return console.render(request, "search_results.html", values)
    values |= {
        "filter_options": group_filter_options(list_filter_options(tool, console.server.search_flags)),
        "examples": EXAMPLE_QUERIES,
        "repositories": await list_repositories(console),
        "selected_repositories": repositories,
        "index": None if not query.is_empty else await describe_index(console, repositories[0]),
    }
    return console.render(request, "search.html", values)


async def _search_repositories(
    console: CallerConsole, query: SearchQuery, repositories: Sequence[str]
) -> tuple[list[SearchHit], list[tuple[str, ToolError]]]:
    """Ask every repository; a problem with one does not hide the hits of the others."""
    if query.is_empty:
        return [], []
    answers = await asyncio.gather(*(_search_repository(console, query, repository) for repository in repositories))
    hits = [hit for answer in answers if isinstance(answer, list) for hit in answer]
    problems = [
        (repository, answer)
        for repository, answer in zip(repositories, answers, strict=True)
        if isinstance(answer, ToolError)
    ]
    return hits, problems


async def _search_repository(
    console: CallerConsole, query: SearchQuery, repository: str
) -> list[SearchHit] | ToolError:
    tool = console.tools.registry.find("search")
    arguments = query.build_arguments(tool, repository if query.repositories else None)
    try:
        answer = await console.tools.run("search", **arguments, output="full", explain=True)
    except ToolError as error:
        return error
    return collect_hits(answer, query.words, repository if query.repositories else "")


ROUTES = (("GET", "/", show_search),)
