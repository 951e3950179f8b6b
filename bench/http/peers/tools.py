"""The tools that are measured: the real ones of the code toolset, and two that do nothing."""

import os
from collections.abc import Mapping
from typing import Any

import anyio

from cleats import app
from cleats.cli.settings_loader import load_settings
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings


async def echo_arguments(args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    return dict(args)


async def wait_forever(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    await anyio.sleep_forever()
    return {}


IDLE_TOOLSET = Toolset(
    name="bench",
    purpose="Tools that do nothing.",
    tools=[
        Tool(
            name="echo",
            description="Answer the arguments.",
            input=arguments({"text": {"type": "string"}}, required=["text"]),
            run=echo_arguments,
        ),
        Tool(name="wait", description="Wait.", input=arguments(), run=wait_forever),
    ],
)


def prepare_toolsets(vitals: ServerStatus) -> tuple[Settings, list[Toolset]]:
    """Return the settings of this process and the toolsets to serve."""
    settings = load_settings(os.environ)
    return settings, [IDLE_TOOLSET, *app.load_toolsets(settings, ["code"], vitals)]
