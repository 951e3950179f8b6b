"""The probes of the other tests on any wire: `python -m tests.servers.surfaces mcp|rpc|legacy`."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from cleats import app
from cleats.cli.config import load
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import FLAT
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.runtime.journal import log_to_stderr
from cleats.runtime.vitals import Vitals
from cleats.transports.stdio import claimed
from tests.servers import probe
from tests.servers.line import hold

TEXT = {"type": "string"}


async def spill(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    """Fail as a tool does whose child process failed."""
    details = {"stderr": "\n  the reason\n", "stdout": "out ", "exit": 3}
    raise ToolError(ErrorCode.CAPABILITY_MISSING, "the child failed", details=details)


async def flat_failure(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    raise ToolError(ErrorCode.NOT_FOUND, "it is not there")


def toolset() -> Toolset:
    tools = [
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
    return Toolset(name="surfaces", purpose="Tools for tests.", tools=tools)


SERVE = {"mcp": app.serve_stdio, "rpc": app.serve_rpc, "legacy": app.serve_legacy}


def main() -> None:
    with claimed() as descriptors:
        log_to_stderr("info")
        app.run(SERVE[sys.argv[1]], load(os.environ), [toolset()], Vitals(), descriptors)


if __name__ == "__main__":
    main()
