"""The `cleats` command with a toolset that does on demand what real tools rarely do.

`python -m tests.support.cli_host call wait` is `cleats call wait` with these tools instead of the built-in
ones.
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
from cleats.contract.tools import Alias, Context, ListChangeCallback, Tool, Toolset, arguments
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings


async def echo_arguments(args: Mapping[str, Any], context: Context) -> dict[str, Any]:
    return dict(args)


async def answer_text(args: Mapping[str, Any], context: Context) -> str:
    return str(args["text"])


async def raise_not_found(args: Mapping[str, Any], context: Context) -> dict[str, Any]:
    raise ToolError(ErrorCode.NOT_FOUND, "there is nothing here", hint="Look elsewhere.")


async def crash_with_secret(args: Mapping[str, Any], context: Context) -> dict[str, Any]:
    raise ZeroDivisionError("secret")


async def print_stray_line(args: Mapping[str, Any], context: Context) -> dict[str, Any]:
    print("a stray line")  # noqa: T201 - what it is for
    return {"half": "\ud800"} if args["unspeakable"] else {}


async def wait_forever(args: Mapping[str, Any], context: Context) -> dict[str, Any]:
    context.progress("waiting", phase="idle", done=1, total=4)
    try:
        await anyio.sleep_forever()
    finally:
        sys.stderr.write("cleaned up\n")
    return {}


TEXT_SCHEMA = {"type": "string", "description": "What to say."}

PROBE_TOOLS = (
    Tool(
        name="echo",
        description="Give the arguments back. Nothing else happens.",
        input=arguments(
            {
                "n": {"type": "integer", "default": 3, "description": "A number."},
                "text": TEXT_SCHEMA,
                "mode": {"enum": ["fast", "slow"]},
                "later": {"type": "string", "x-reserved": True},
            },
            required=("text",),
        ),
        run=echo_arguments,
        version=2,
        aliases=(Alias("repeat", "2.0.0"),),
        errors=(ErrorCode.NOT_FOUND,),
        examples=({"arguments": {"text": "it's"}},),
    ),
    Tool(
        name="say",
        description="Say it as text.",
        input=arguments({"text": TEXT_SCHEMA}, required=("text",)),
        payload=CONTENT,
        run=answer_text,
    ),
    Tool(
        name="fail",
        description="Fail.",
        input=arguments(),
        run=raise_not_found,
        errors=(ErrorCode.NOT_FOUND,),
    ),
    Tool(name="crash", description="Crash.", input=arguments(), run=crash_with_secret),
    Tool(
        name="mumble",
        description="Print where only answers go.",
        input=arguments({"unspeakable": {"type": "boolean", "default": False}}),
        run=print_stray_line,
    ),
    Tool(name="wait", description="Wait for ever.", input=arguments(), run=wait_forever, timeout=60.0),
)


@asynccontextmanager
async def fail_to_start(_changed: ListChangeCallback) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(raise_no_store)
        await anyio.sleep_forever()
        yield


@asynccontextmanager
async def fail_to_stop(_changed: ListChangeCallback) -> AsyncIterator[None]:
    yield
    await raise_no_store()


async def raise_no_store() -> None:
    raise RuntimeError("no store")


def build_idle_tools(name: str) -> tuple[Tool, ...]:
    return (Tool(name=name, description="Do nothing.", input=arguments(), run=echo_arguments),)


def make_toolset_factory(toolset: Toolset) -> Callable[[Settings, ServerStatus, object], Toolset]:
    return lambda _settings, _vitals, _open_code_engine: toolset


TEST_TOOLSETS = (
    Toolset(name="probes", purpose="Show what can happen.", tools=PROBE_TOOLS),
    Toolset(name="dead", purpose="Cannot start.", tools=build_idle_tools("never"), running=fail_to_start),
    Toolset(name="frail", purpose="Cannot stop.", tools=build_idle_tools("once"), running=fail_to_stop),
)

if __name__ == "__main__":
    app.BUILTIN_TOOLSETS = {toolset.name: make_toolset_factory(toolset) for toolset in TEST_TOOLSETS}
    main()
