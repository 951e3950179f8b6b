"""The `cleats` command over a toolset that can do what real ones rarely do on demand.

`python -m tests.cli_host call wait` is `cleats call wait` with these tools in place of ours.
"""

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

from cleats import app
from cleats.cli.main import main
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Alias, Changed, Context, Tool, Toolset, arguments
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings


async def echo(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    return dict(given)


async def say(given: Mapping[str, Any], context: Context) -> str:
    return str(given["text"])


async def fail(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    raise ToolError(ErrorCode.NOT_FOUND, "there is nothing here", hint="Look elsewhere.")


async def crash(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    raise ZeroDivisionError("secret")


async def mumble(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    print("a stray line")  # noqa: T201 - what it is for
    return {"half": "\ud800"} if given["unspeakable"] else {}


async def wait(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    context.progress("waiting", phase="idle", done=1, total=4)
    try:
        await anyio.sleep_forever()
    finally:
        sys.stderr.write("cleaned up\n")
    return {}


TEXT = {"type": "string", "description": "What to say."}

TOOLS = (
    Tool(
        name="echo",
        description="Give the arguments back. Nothing else happens.",
        input=arguments(
            {
                "n": {"type": "integer", "default": 3, "description": "A number."},
                "text": TEXT,
                "mode": {"enum": ["fast", "slow"]},
                "later": {"type": "string", "x-reserved": True},
            },
            required=("text",),
        ),
        run=echo,
        version=2,
        aliases=(Alias("repeat", "2.0.0"),),
        errors=(ErrorCode.NOT_FOUND,),
        examples=({"arguments": {"text": "it's"}},),
    ),
    Tool(
        name="say",
        description="Say it as text.",
        input=arguments({"text": TEXT}, required=("text",)),
        payload=CONTENT,
        run=say,
    ),
    Tool(
        name="fail",
        description="Fail.",
        input=arguments(),
        run=fail,
        errors=(ErrorCode.NOT_FOUND,),
    ),
    Tool(name="crash", description="Crash.", input=arguments(), run=crash),
    Tool(
        name="mumble",
        description="Print where only answers go.",
        input=arguments({"unspeakable": {"type": "boolean", "default": False}}),
        run=mumble,
    ),
    Tool(name="wait", description="Wait for ever.", input=arguments(), run=wait, timeout=60.0),
)


@asynccontextmanager
async def unstartable(_changed: Changed) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(give_up)
        await anyio.sleep_forever()
        yield


@asynccontextmanager
async def unstoppable(_changed: Changed) -> AsyncIterator[None]:
    yield
    await give_up()


async def give_up() -> None:
    raise RuntimeError("no store")


def idle(name: str) -> tuple[Tool, ...]:
    return (Tool(name=name, description="Do nothing.", input=arguments(), run=echo),)


def made(toolset: Toolset) -> Callable[[Settings, Vitals], Toolset]:
    return lambda _settings, _vitals: toolset


TOOLSETS = (
    Toolset(name="probes", purpose="Show what can happen.", tools=TOOLS),
    Toolset(name="dead", purpose="Cannot start.", tools=idle("never"), running=unstartable),
    Toolset(name="frail", purpose="Cannot stop.", tools=idle("once"), running=unstoppable),
)

if __name__ == "__main__":
    app.TOOLSETS = {each.name: made(each) for each in TOOLSETS}
    main()
