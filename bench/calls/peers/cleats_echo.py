"""Cleats with its default settings, on its own stdio wire.

Arguments are validated against the schema, calls go through the queue, and each leaves a span in
a file and a line on stderr. The tool answers with plain content, so that its text is what every
other peer sends.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from cleats.app import run_server, serve_stdio
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings
from cleats.transports.stdio import claim_stdio


async def echo_arguments(args: Mapping[str, Any], _context: Context) -> str:
    return msgspec.json.encode(args).decode()


ECHO_TOOL = Tool(
    name="echo",
    description="Answer the arguments as JSON text.",
    input=arguments({"text": {"type": "string"}, "n": {"type": "integer"}}, required=["text"]),
    run=echo_arguments,
    payload=CONTENT,
)

if __name__ == "__main__":
    # The benchmark starts every server in a folder that it removes afterwards.
    settings = Settings(data_dir=Path.cwd())
    toolset = Toolset(name="bench", purpose="One tool to measure.", tools=[ECHO_TOOL])
    with claim_stdio() as descriptors:
        run_server(serve_stdio, settings, [toolset], ServerStatus(), descriptors)
