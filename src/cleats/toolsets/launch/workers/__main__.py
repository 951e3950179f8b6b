"""The process of one step: an order on stdin, lines of JSON on stdout.

Lines with `tell` are progress; the last line is `result` or `error`. Standard output is taken
away from everybody else first, so whatever a worker or a library prints goes to stderr.

Imports are few: this process starts once for every step of every run.
"""

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from cleats.contract.errors import ToolError
from cleats.toolsets.launch import disk
from cleats.toolsets.launch.workers.job import Job


def main() -> None:
    """Do what the order says."""
    order = json.loads(sys.stdin.buffer.read())
    module = order.pop("module")
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)

        def say(said: Mapping[str, Any]) -> None:
            channel.write(job.hushed(json.dumps(said).encode()) + b"\n")
            channel.flush()

        job = Job.of(order, say)
        try:
            facts = asyncio.run(import_module(module).run(job))
            answer = {"facts": dict(facts), "artifacts": job.outputs, "events": job.events}
            said = json.dumps({"result": answer}, allow_nan=False)
        except Exception as crash:  # noqa: BLE001 - the last line has to be said
            known = disk.trouble(crash) if isinstance(crash, OSError) else crash
            if isinstance(known, ToolError):
                told = {**known.as_json(), "artifacts": job.left, "events": job.events}
                said = json.dumps({"error": told}, default=str)
            else:
                sys.stderr.buffer.write(job.hushed(traceback.format_exc().encode()))
                said = json.dumps({"crash": {"cause_class": type(crash).__name__}})
        channel.write(job.hushed(said.encode()) + b"\n")


main()
