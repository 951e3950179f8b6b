"""Tools on the rpc wire: one that can be held up, and the probes of the other tests."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleats import app
from cleats.cli.settings_loader import load_settings
from cleats.contract.payload import FLAT
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.runtime.background_writer import log_to_stderr
from cleats.runtime.server_status import ServerStatus
from cleats.transports.stdio import claim_stdio
from tests.support.servers import probe


async def hold_until_released(args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    """Record the start, wait until the test releases the call, and record the end."""
    folder, name = Path(args["folder"]), args["name"]
    with (folder / "order").open("a") as order:
        order.write(f"began {name}\n")
    while not (folder / f"go-{name}").exists():
        await asyncio.sleep(0.005)
    with (folder / "order").open("a") as order:
        order.write(f"ended {name}\n")
    return {"ok": True, "name": name}


def main() -> None:
    text = {"type": "string"}
    hold_tool = Tool(
        name="hold",
        description="Wait until a file is there.",
        input=arguments({"folder": text, "name": text}, required=["folder", "name"]),
        run=hold_until_released,
        payload=FLAT,
    )
    tools = [*probe.build_toolset().tools, hold_tool]
    with claim_stdio() as descriptors:
        log_to_stderr("info")
        toolsets = [Toolset(name="line", purpose="Tools for tests.", tools=tools)]
        asyncio.run(app.serve_rpc(load_settings(os.environ), toolsets, ServerStatus(), descriptors))


if __name__ == "__main__":
    main()
