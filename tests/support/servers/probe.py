"""A Cleats server whose tools do what tests need: wait, report, crash, print, grow a tree."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from cleats import app
from cleats.cli.settings_loader import load_settings
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Alias, Context, ListChangeCallback, Tool, Toolset, arguments
from cleats.runtime.background_writer import log_to_stderr
from cleats.runtime.server_status import ServerStatus
from cleats.system.processes import process
from cleats.transports.stdio import claim_stdio
from tests.support import process_trees as trees

Args = Mapping[str, Any]

FOLDER_PROPERTY = {"folder": {"type": "string"}}


async def echo_arguments(args: Args, _context: Context) -> dict[str, Any]:
    return dict(args)


async def block_until_stopped(args: Args, context: Context) -> dict[str, Any]:
    """Write a file when the call begins and one when it is stopped."""
    folder = Path(args["folder"])
    (folder / f"began-{args['name']}").touch()
    try:
        context.progress("waiting")
        await anyio.sleep_forever()
    finally:
        context.progress("too late")
        (folder / f"stopped-{args['name']}").touch()
    raise AssertionError


async def report_steps(args: Args, context: Context) -> dict[str, Any]:
    """Report progress far more often than it is forwarded."""
    for step in range(args["steps"]):
        context.progress(f"step {step}", phase="stepping", done=step, total=args["steps"])
        await asyncio.sleep(0.001)
    return {"steps": args["steps"]}


async def run_process_tree(args: Args, _context: Context) -> dict[str, Any]:
    done = await process.run(trees.build_command(Path(args["folder"]), args["kind"]), grace=args["grace"])
    return {"exit": done.exit_code}


async def crash_with_secret(_args: Args, _context: Context) -> dict[str, Any]:
    raise RuntimeError("secret /internal/path")


async def raise_no_index(_args: Args, _context: Context) -> dict[str, Any]:
    raise ToolError(ErrorCode.NO_INDEX, "no index here", hint="Build it.", details={"repo": "r"})


async def write_noise(_args: Args, _context: Context) -> dict[str, Any]:
    """Write to stdout in every way that a careless tool does."""
    print("a stray print")  # noqa: T201
    os.write(1, b"raw bytes on fd 1\n")
    subprocess.run(["echo", "a child's output"], check=True)  # noqa: ASYNC221
    return {"stdin": os.read(0, 10).decode()}


async def return_lone_surrogate(_args: Args, _context: Context) -> dict[str, Any]:
    return {"text": "\ud800"}


async def answer_text(_args: Args, _context: Context) -> str:
    return "plain text"


class GrowingToolset:
    """A toolset whose list of tools changes when a tool is called."""

    def __init__(self) -> None:
        self.size = 1
        self._changed: ListChangeCallback = lambda *_lists: None

    async def grow(self, _args: Args, _context: Context) -> dict[str, Any]:
        self.size += 1
        self._changed()
        return {"size": self.size}

    def describe(self) -> str:
        return f"I have been grown {self.size} times."

    @asynccontextmanager
    async def running(self, changed: ListChangeCallback) -> AsyncIterator[None]:
        self._changed = changed
        yield


def build_toolset() -> Toolset:
    growing = GrowingToolset()
    name = {"name": {"type": "string"}}
    return Toolset(
        name="probe",
        purpose="Tools for tests.",
        running=growing.running,
        changes=True,
        tools=[
            Tool(
                name="echo",
                description="Answer the arguments.",
                input=arguments(
                    {
                        "text": {"type": "string"},
                        "n": {"type": "integer", "default": 1},
                        "later": {"type": "string", "x-reserved": True},
                    },
                    required=["text"],
                ),
                output={"type": "object", "required": ["text", "n"]},
                run=echo_arguments,
                version=3,
                aliases=(Alias("say", "2.0.0"),),
            ),
            Tool(
                name="block",
                description="Wait for ever.",
                input=arguments({**FOLDER_PROPERTY, **name}, required=["folder", "name"]),
                run=block_until_stopped,
            ),
            Tool(
                name="count",
                description="Report progress.",
                input=arguments({"steps": {"type": "integer"}}, required=["steps"]),
                run=report_steps,
            ),
            Tool(
                name="tree",
                description="Run a tree of processes.",
                input=arguments(
                    {
                        **FOLDER_PROPERTY,
                        "kind": {"type": "string"},
                        "grace": {"type": "number", "default": 0.5},
                    },
                    required=["folder"],
                ),
                run=run_process_tree,
            ),
            Tool(name="crash", description="Raise.", input=arguments(), run=crash_with_secret),
            Tool(
                name="refuse",
                description="Fail.",
                input=arguments(),
                run=raise_no_index,
                errors=(ErrorCode.NO_INDEX,),
            ),
            Tool(name="noisy", description="Print.", input=arguments(), run=write_noise),
            Tool(name="unspeakable", description="Not JSON.", input=arguments(), run=return_lone_surrogate),
            Tool(name="text", description="Say text.", input=arguments(), run=answer_text, payload=CONTENT),
            Tool(name="grow", description=growing.describe, input=arguments(), run=growing.grow),
        ],
    )


def main() -> None:
    with claim_stdio() as descriptors:
        log_to_stderr("info")
        app.run_server(app.serve_stdio, load_settings(os.environ), [build_toolset()], ServerStatus(), descriptors)


if __name__ == "__main__":
    main()
