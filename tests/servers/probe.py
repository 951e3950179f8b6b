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
from cleats.cli.config import load
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Alias, Changed, Context, Tool, Toolset, arguments
from cleats.runtime import process
from cleats.runtime.journal import log_to_stderr
from cleats.runtime.vitals import Vitals
from cleats.transports.stdio import claimed
from tests import trees

Args = Mapping[str, Any]

FOLDER = {"folder": {"type": "string"}}


async def echo(args: Args, _context: Context) -> dict[str, Any]:
    return dict(args)


async def block(args: Args, context: Context) -> dict[str, Any]:
    """Leave a file when it begins and one when it is stopped."""
    folder = Path(args["folder"])
    (folder / f"began-{args['name']}").touch()
    try:
        context.progress("waiting")
        await anyio.sleep_forever()
    finally:
        context.progress("too late")
        (folder / f"stopped-{args['name']}").touch()
    raise AssertionError


async def count(args: Args, context: Context) -> dict[str, Any]:
    """Report far more often than anyone wants to know."""
    for step in range(args["steps"]):
        context.progress(f"step {step}", phase="count", done=step, total=args["steps"])
        await asyncio.sleep(0.001)
    return {"steps": args["steps"]}


async def tree(args: Args, _context: Context) -> dict[str, Any]:
    done = await process.run(trees.command(Path(args["folder"]), args["kind"]), grace=args["grace"])
    return {"exit": done.exit_code}


async def crash(_args: Args, _context: Context) -> dict[str, Any]:
    raise RuntimeError("secret /internal/path")


async def refuse(_args: Args, _context: Context) -> dict[str, Any]:
    raise ToolError(ErrorCode.NO_INDEX, "no index here", hint="Build it.", details={"repo": "r"})


async def noisy(_args: Args, _context: Context) -> dict[str, Any]:
    """Everything a careless tool does with stdout."""
    print("a stray print")  # noqa: T201
    os.write(1, b"raw bytes on fd 1\n")
    subprocess.run(["echo", "a child's output"], check=True)  # noqa: ASYNC221
    return {"stdin": os.read(0, 10).decode()}


async def unspeakable(_args: Args, _context: Context) -> dict[str, Any]:
    return {"text": "\ud800"}


async def text(_args: Args, _context: Context) -> str:
    return "plain text"


class Growing:
    """A toolset whose list changes when a tool says so."""

    def __init__(self) -> None:
        self.size = 1
        self._changed: Changed = lambda *_lists: None

    async def grow(self, _args: Args, _context: Context) -> dict[str, Any]:
        self.size += 1
        self._changed()
        return {"size": self.size}

    def describe(self) -> str:
        return f"I have been grown {self.size} times."

    @asynccontextmanager
    async def running(self, changed: Changed) -> AsyncIterator[None]:
        self._changed = changed
        yield


def toolset() -> Toolset:
    growing = Growing()
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
                run=echo,
                version=3,
                aliases=(Alias("say", "2.0.0"),),
            ),
            Tool(
                name="block",
                description="Wait for ever.",
                input=arguments({**FOLDER, **name}, required=["folder", "name"]),
                run=block,
            ),
            Tool(
                name="count",
                description="Report progress.",
                input=arguments({"steps": {"type": "integer"}}, required=["steps"]),
                run=count,
            ),
            Tool(
                name="tree",
                description="Run a tree of processes.",
                input=arguments(
                    {
                        **FOLDER,
                        "kind": {"type": "string"},
                        "grace": {"type": "number", "default": 0.5},
                    },
                    required=["folder"],
                ),
                run=tree,
            ),
            Tool(name="crash", description="Raise.", input=arguments(), run=crash),
            Tool(
                name="refuse",
                description="Fail.",
                input=arguments(),
                run=refuse,
                errors=(ErrorCode.NO_INDEX,),
            ),
            Tool(name="noisy", description="Print.", input=arguments(), run=noisy),
            Tool(name="unspeakable", description="Not JSON.", input=arguments(), run=unspeakable),
            Tool(
                name="text", description="Say text.", input=arguments(), run=text, payload=CONTENT
            ),
            Tool(name="grow", description=growing.describe, input=arguments(), run=growing.grow),
        ],
    )


def main() -> None:
    with claimed() as descriptors:
        log_to_stderr("info")
        app.run(app.serve_stdio, load(os.environ), [toolset()], Vitals(), descriptors)


if __name__ == "__main__":
    main()
