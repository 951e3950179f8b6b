"""The probes of the other tests on any surface: `python -m tests.servers.surfaces SURFACE`.

Two of them have the names and arguments that routes of the HTTP API look for.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from cleats import app
from cleats.cli.config import load
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import FLAT
from cleats.contract.routes import Route, RouteAnswer, RouteRequest
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.runtime.journal import log_to_stderr
from cleats.runtime.vitals import Vitals
from cleats.transports.http.listening import base_url, bind
from cleats.transports.stdio import claimed
from tests.servers import probe
from tests.servers.line import hold

TEXT = {"type": "string"}


def repository(given: Mapping[str, Any]) -> str:
    """The repository that a call is about."""
    return str(given.get("repoPath", load(os.environ).project_dir))


async def spill(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    """Fail as a tool does whose child process failed."""
    details = {"stderr": "\n  the reason\n", "stdout": "out ", "exit": 3}
    raise ToolError(ErrorCode.CAPABILITY_MISSING, "the child failed", details=details)


async def flat_failure(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    raise ToolError(ErrorCode.NOT_FOUND, "it is not there")


async def leak(given: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    """Fail as a tool does that says too much."""
    inside = Path(repository(given)) / "a.py"
    details = {"paths": ["/etc/passwd", str(inside)], "pointer": "/etcetera/x"}
    raise ToolError(
        ErrorCode.NOT_FOUND, f"neither /etc/shadow nor {inside}:12, see /query", details=details
    )


async def search(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Answer the arguments; the query `none` has no index, and `wait` waits."""
    if given["query"] == "none":
        raise ToolError(ErrorCode.NO_INDEX, "there is no index", hint="Build it.")
    context.about(repository(given))
    context.progress("Running search.", phase="search")
    if given["query"] == "wait":
        await anyio.sleep_forever()
    return {"arguments": dict(given)}


async def report(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Answer that there is nothing; a repository with a file `broken` in it cannot be looked at."""
    context.about(repository(given))
    context.progress("Looking.", phase="report")
    if (Path(repository(given)) / "broken").exists():
        raise ToolError(ErrorCode.INTERNAL, "the index is broken")
    return {"artifacts": []}


SEARCH: dict[str, Any] = {
    "query": TEXT,
    "repoPath": TEXT,
    "top": {"type": "integer", "minimum": 0},
    "score": {"type": "number"},
    "ann": {"type": ["boolean", "null"]},
    "mode": {"enum": ["code", "prose"]},
    "path": {"oneOf": [TEXT, {"type": "array", "items": TEXT}]},
    "meta": {"type": ["object", "array"]},
}


def named() -> list[Tool]:
    """The tools that routes stand for."""
    return [
        Tool(
            name="search",
            description="Answer the arguments.",
            input=arguments(SEARCH, required=["query"]),
            run=search,
            errors=(ErrorCode.NO_INDEX,),
        ),
        Tool(
            name="report_artifacts",
            description="Answer nothing.",
            input=arguments({"repoPath": TEXT}),
            run=report,
        ),
        Tool(
            name="leak",
            description="Fail with paths.",
            input=arguments({"repoPath": TEXT}),
            run=leak,
            errors=(ErrorCode.NOT_FOUND,),
        ),
    ]


def toolset() -> Toolset:
    tools = [
        *named(),
        *probe.toolset().tools,
        Tool(
            name="hold",
            description="Wait until a file is there.",
            input=arguments({"folder": TEXT, "name": TEXT}, required=["folder", "name"]),
            run=hold,
            payload=FLAT,
        ),
        Tool(
            name="spill",
            description="Fail with output.",
            input=arguments(),
            run=spill,
            errors=(ErrorCode.CAPABILITY_MISSING,),
        ),
        Tool(
            name="absent",
            description="Fail flatly.",
            input=arguments(),
            run=flat_failure,
            payload=FLAT,
            errors=(ErrorCode.NOT_FOUND,),
        ),
    ]
    return Toolset(
        name="surfaces", purpose="Tools for tests.", tools=tools, routes=ROUTES, ready=reachable
    )


async def asked(request: RouteRequest) -> RouteAnswer:
    """Answer what was asked; `leak` fails as a route does that says too much."""
    if request.path.get("word") == "leak":
        raise ToolError(ErrorCode.NOT_FOUND, "not in /etc/shadow")
    if request.path.get("word") == "crash":
        raise RuntimeError("a route")
    shown = {name: getattr(request, name) for name in ("path", "query", "body", "caller")}
    shown["headers"] = sorted(request.headers)
    return RouteAnswer(shown, 201, {"x-own": "yes"})


async def reachable() -> None:
    """Fail while there is a file of this name in the working folder."""
    if await anyio.Path("unreachable").exists():
        raise OSError("the store is away")


ROUTES = [
    Route(
        "GET", "/own/words/{word}", asked, "A word.", {201: {"type": "object"}}, query={"a": TEXT}
    ),
    Route("PATCH", "/own/words/{word}", asked, "Change a word.", takes={"type": "array"}),
    Route("POST", "/own/words", asked, "Words."),
]

SERVE = {"mcp": app.serve_stdio, "rpc": app.serve_rpc, "legacy": app.serve_legacy}


def main() -> None:
    surface = sys.argv[1]
    with claimed() as descriptors:
        log_to_stderr("info")
        settings = load(os.environ)
        if surface == "http":
            with bind("127.0.0.1", 0) as listener:
                line = json.dumps({"baseUrl": base_url(listener)}).encode() + b"\n"
                os.write(descriptors[1], line)
                app.run(app.serve_http, settings, [toolset()], Vitals(), listener)
        else:
            app.run(SERVE[surface], settings, [toolset()], Vitals(), descriptors)


if __name__ == "__main__":
    main()
