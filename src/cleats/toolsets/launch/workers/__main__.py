"""The process of one step: an order on stdin, lines of JSON on stdout.

Lines with `tell` are progress; the last line is `result` or `error`. Anything that a worker or a
library prints goes to stderr.

Imports are few: this process starts once for every step of every run.
"""

import asyncio
import json
import sys
import traceback
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

from cleats.contract.errors import ToolError
from cleats.system.worker_process import open_channel
from cleats.toolsets.launch.runs import storage
from cleats.toolsets.launch.runs.job import WorkerJob, encode_failure


def main() -> None:
    """Run the job of the order."""
    order = json.loads(sys.stdin.buffer.read())
    function_name = order.pop("function")
    with open_channel() as write_line:

        def send_message(message: Mapping[str, Any]) -> None:
            write_line(job.redact_secrets(json.dumps(message).encode()))

        job = WorkerJob.from_order(order, send_message)
        try:
            facts = asyncio.run(resolve_name(function_name)(job))
            result = {"facts": dict(facts), "artifacts": job.outputs, "events": job.events}
            last_line = json.dumps({"result": result}, allow_nan=False)
        except Exception as crash:  # noqa: BLE001 - the last line has to be written
            tool_error = storage.wrap_os_error(crash) if isinstance(crash, OSError) else crash
            if isinstance(tool_error, ToolError):
                error_document = {**encode_failure(tool_error), "artifacts": job.failure_outputs, "events": job.events}
                last_line = json.dumps({"error": error_document}, default=str)
            else:
                sys.stderr.buffer.write(job.redact_secrets(traceback.format_exc().encode()))
                last_line = json.dumps({"crash": {"cause_class": type(crash).__name__}})
        write_line(job.redact_secrets(last_line.encode()))


main()
