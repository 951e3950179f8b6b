"""Any toolset on the rpc wire: one that can be held up, and the probes of the other tests."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleats import app
from cleats.cli.config import load
from cleats.contract.payload import FLAT
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.runtime.journal import log_to_stderr
from cleats.runtime.vitals import Vitals
from cleats.transports.stdio import claimed
from tests.servers import probe


async def hold(given: Mapping[str, Any], _context: Context) -> dict[str, Any]:
    """Say that it began, then wait until it is let go."""
    folder, name = Path(given["folder"]), given["name"]
    with (folder / "order").open("a") as order:
        order.write(f"began {name}\n")
    while not (folder / f"go-{name}").exists():
        await asyncio.sleep(0.005)
    with (folder / "order").open("a") as order:
        order.write(f"ended {name}\n")
    return {"ok": True, "name": name}


def main() -> None:
    text = {"type": "string"}
    held = Tool(
        name="hold",
        description="Wait until a file is there.",
        input=arguments({"folder": text, "name": text}, required=["folder", "name"]),
        run=hold,
        payload=FLAT,
    )
    tools = [*probe.toolset().tools, held]
    with claimed() as descriptors:
        log_to_stderr("info")
        served = [Toolset(name="line", purpose="Tools for tests.", tools=tools)]
        asyncio.run(app.serve_rpc(load(os.environ), served, Vitals(), descriptors))


if __name__ == "__main__":
    main()
