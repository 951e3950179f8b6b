"""The builder's process: an order on stdin, lines on stdout (see `lines`)."""

# ruff: noqa: E402 - nothing that a build loads is garbage, and to look for it takes a tenth of it
import gc

gc.disable()

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from cleats.contract.errors import ToolError
from cleats.toolsets.code.indexing.lines import Failure, Order, spoken
from cleats.toolsets.code.indexing.run import build
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store.generations import Shelf


def main() -> None:
    """Do what the order says."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    # Whatever else is printed in this process must not look like one of our lines.
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)

        def say(**said: Any) -> None:
            channel.write(spoken(**said))
            channel.flush()

        repository = Repository(Path(order.root))
        shelf = Shelf(Path(order.cache_dir), repository)
        try:
            done = build(repository.root, shelf, order.options, lambda at: say(progress=at))
        except ToolError as error:
            say(error=Failure.of(error))
        else:
            say(report=done)


main()
os._exit(0)  # all is said; to free everything piece by piece takes another tenth
