"""A tool of your own on the Cleats kernel: it runs a slow command and reports how far it is.

    python examples/slow/server.py

The command starts children of its own. Cancel the call, and none of them is left.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleats import app
from cleats.contract.tools import Context, Hints, Tool, Toolset, arguments
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings
from cleats.system.processes import process
from cleats.transports.stdio import claim_stdio

# A "build" of three processes: the shell, a child, and one that hides in a session of its own.
BUILD = """
sleep 60 &
setsid sleep 60 &
i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo "compiling file $i"; sleep 0.1; done
"""


async def slow_build(args: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Run the build; cancelling the call cancels it, children included."""
    lines = 0

    def heard(_stream: str, line: bytes) -> None:
        nonlocal lines
        lines += 1
        context.progress(line.decode().strip(), phase="build", done=lines, total=600)

    environ = {**os.environ, "BUILD_LABEL": args["label"]}
    done = await process.run(["sh", "-c", BUILD], env=environ, on_output=heard)
    return {"exitCode": done.exit_code, "lines": lines}


TOOLSET = Toolset(
    name="slow",
    purpose="Work that takes its time.",
    tools=[
        Tool(
            name="slow_build",
            description="Build for a minute, with progress. Safe to cancel.",
            input=arguments({"label": {"type": "string"}}, required=["label"]),
            run=slow_build,
            timeout=120.0,
            hints=Hints(read_only=False),
        )
    ],
)


def main() -> None:
    with claim_stdio() as descriptors:
        settings = Settings(telemetry="off", log_level="warning", data_dir=Path())
        app.run_server(app.serve_stdio, settings, [TOOLSET], ServerStatus(), descriptors)


if __name__ == "__main__":
    main()
