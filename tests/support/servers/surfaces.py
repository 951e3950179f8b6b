"""The probes of the other tests on any surface: `python -m tests.support.servers.surfaces SURFACE`.

Two of the tools have the names and arguments that routes of the HTTP API look for.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from cleats import app
from cleats.cli.settings_loader import load_settings
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import FLAT
from cleats.contract.routes import Route, RouteAnswer, RouteRequest
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.runtime.background_writer import log_to_stderr
from cleats.runtime.server_status import ServerStatus
from cleats.transports.http.service import base_url, bind_socket
from cleats.transports.http.workers.group import GroupEnd, run_workers
from cleats.transports.stdio import claim_stdio
from tests.support.servers import probe
from tests.support.servers.line import hold_until_released

TEXT_SCHEMA = {"type": "string"}


def resolve_repository(args: Mapping[str, Any]) -> str:
    """Return the repository of a call."""
    return str(args.get("repoPath", load_settings(os.environ).project_dir))


async def fail_with_output(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    """Fail as a tool does whose child process failed."""
    details = {"stderr": "\n  the reason\n", "stdout": "out ", "exit": 3}
    raise ToolError(ErrorCode.CAPABILITY_MISSING, "the child failed", details=details)


async def fail_flatly(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    raise ToolError(ErrorCode.NOT_FOUND, "it is not there")


async def fail_with_paths(args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    """Fail with an error that reveals paths."""
    repository_file = Path(resolve_repository(args)) / "a.py"
    details = {"paths": ["/etc/passwd", str(repository_file)], "pointer": "/etcetera/x"}
    raise ToolError(ErrorCode.NOT_FOUND, f"neither /etc/shadow nor {repository_file}:12, see /query", details=details)


async def echo_search(args: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return the arguments; the query `none` has no index, and `wait` waits forever."""
    if args["query"] == "none":
        raise ToolError(ErrorCode.NO_INDEX, "there is no index", hint="Build it.")
    context.about(resolve_repository(args))
    context.progress("Running search.", phase="search")
    if args["query"] == "wait":
        await anyio.sleep_forever()
    return {"arguments": dict(args)}


async def report_no_artifacts(args: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return no artifacts; fail for a repository that contains a file `broken`."""
    context.about(resolve_repository(args))
    context.progress("Looking.", phase="report")
    if (Path(resolve_repository(args)) / "broken").exists():
        raise ToolError(ErrorCode.INTERNAL, "the index is broken")
    return {"artifacts": []}


SEARCH_PROPERTIES: dict[str, Any] = {
    "query": TEXT_SCHEMA,
    "repoPath": TEXT_SCHEMA,
    "top": {"type": "integer", "minimum": 0},
    "score": {"type": "number"},
    "ann": {"type": ["boolean", "null"]},
    "mode": {"enum": ["code", "prose"]},
    "path": {"oneOf": [TEXT_SCHEMA, {"type": "array", "items": TEXT_SCHEMA}]},
    "meta": {"type": ["object", "array"]},
}


def build_route_tools() -> list[Tool]:
    """Build the tools that the routes call."""
    return [
        Tool(
            name="search",
            description="Answer the arguments.",
            input=arguments(SEARCH_PROPERTIES, required=["query"]),
            run=echo_search,
            errors=(ErrorCode.NO_INDEX,),
        ),
        Tool(
            name="report_artifacts",
            description="Answer nothing.",
            input=arguments({"repoPath": TEXT_SCHEMA}),
            run=report_no_artifacts,
        ),
        Tool(
            name="leak",
            description="Fail with paths.",
            input=arguments({"repoPath": TEXT_SCHEMA}),
            run=fail_with_paths,
            errors=(ErrorCode.NOT_FOUND,),
        ),
    ]


def build_toolset() -> Toolset:
    tools = [
        *build_route_tools(),
        *probe.build_toolset().tools,
        Tool(
            name="hold",
            description="Wait until a file is there.",
            input=arguments({"folder": TEXT_SCHEMA, "name": TEXT_SCHEMA}, required=["folder", "name"]),
            run=hold_until_released,
            payload=FLAT,
        ),
        Tool(
            name="spill",
            description="Fail with output.",
            input=arguments(),
            run=fail_with_output,
            errors=(ErrorCode.CAPABILITY_MISSING,),
        ),
        Tool(
            name="absent",
            description="Fail flatly.",
            input=arguments(),
            run=fail_flatly,
            payload=FLAT,
            errors=(ErrorCode.NOT_FOUND,),
        ),
    ]
    return Toolset(name="surfaces", purpose="Tools for tests.", tools=tools, routes=PROBE_ROUTES, ready=check_reachable)


async def echo_route_request(request: RouteRequest) -> RouteAnswer:
    """Return the parts of the request; `leak` fails with an error that reveals paths."""
    if request.path.get("word") == "leak":
        raise ToolError(ErrorCode.NOT_FOUND, "not in /etc/shadow")
    if request.path.get("word") == "crash":
        raise RuntimeError("a route")
    request_fields = {name: getattr(request, name) for name in ("path", "query", "body", "caller")}
    request_fields["headers"] = sorted(request.headers)
    return RouteAnswer(request_fields, 201, {"x-own": "yes"})


async def check_reachable() -> None:
    """Fail while there is a file `unreachable` in the working folder."""
    if await anyio.Path("unreachable").exists():
        raise OSError("the store is away")


PROBE_ROUTES = [
    Route(
        "GET", "/own/words/{word}", echo_route_request, "A word.", {201: {"type": "object"}}, query={"a": TEXT_SCHEMA}
    ),
    Route("PATCH", "/own/words/{word}", echo_route_request, "Change a word.", takes={"type": "array"}),
    Route("POST", "/own/words", echo_route_request, "Words."),
]

SERVE_FUNCTIONS = {"mcp": app.serve_stdio, "rpc": app.serve_rpc, "legacy": app.serve_legacy}


def main() -> None:
    surface = sys.argv[1]
    with claim_stdio() as descriptors:
        log_to_stderr("info")
        settings = load_settings(os.environ)
        if surface == "http":
            with bind_socket("127.0.0.1", 0) as listener:
                line = json.dumps({"baseUrl": base_url(listener)}).encode() + b"\n"

                def announce() -> None:
                    os.write(descriptors[1], line)

                worker_count = int(os.environ.get("TEST_WORKERS", "1"))
                source: Any = listener
                if worker_count > 1:
                    source = run_workers(settings, [build_toolset()], listener, worker_count, announce)
                    if isinstance(source, GroupEnd):
                        sys.exit(source.exit_code)
                else:
                    announce()
                app.run_server(app.serve_http, settings, [build_toolset()], ServerStatus(), source)
        else:
            app.run_server(SERVE_FUNCTIONS[surface], settings, [build_toolset()], ServerStatus(), descriptors)


if __name__ == "__main__":
    main()
