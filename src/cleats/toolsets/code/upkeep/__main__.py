"""The packer's process: an order on stdin, lines on stdout (see `packer`)."""

import os
import sys
from typing import Any

import msgspec

from cleats.contract.errors import ToolError
from cleats.toolsets.code.indexing.lines import Failure
from cleats.toolsets.code.upkeep.packer import Line
from cleats.toolsets.code.upkeep.packing import Order, carried_out


def main() -> None:
    """Do what the order says."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    # Whatever else is printed in this process must not look like one of our lines.
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)

        def say(**said: Any) -> None:
            channel.write(msgspec.json.encode(Line(**said)) + b"\n")
            channel.flush()

        try:
            done = carried_out(order, lambda at: say(progress=at))
        except ToolError as error:
            say(error=Failure.of(error))
        else:
            say(done=done)


main()
