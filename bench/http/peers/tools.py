"""The tools that are measured: the real ones of the code toolset, and two that do nothing."""

import os
from collections.abc import Mapping
from typing import Any

import anyio

from cleats import app
from cleats.cli.config import load
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings


async def echo(given: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    return dict(given)


async def wait(_given: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    await anyio.sleep_forever()
    return {}


IDLE = Toolset(
    name="bench",
    purpose="Tools that do nothing.",
    tools=[
        Tool(
            name="echo",
            description="Answer the arguments.",
            input=arguments({"text": {"type": "string"}}, required=["text"]),
            run=echo,
        ),
        Tool(name="wait", description="Wait.", input=arguments(), run=wait),
    ],
)


def prepared(vitals: Vitals) -> tuple[Settings, list[Toolset]]:
    """The settings of this process, and what is served with them."""
    settings = load(os.environ)
    return settings, [IDLE, *app.toolsets(settings, ["code"], vitals)]
