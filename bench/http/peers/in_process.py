"""The same call without HTTP: `python -m bench.http.peers.in_process TOOL JSON SECONDS`.

Prints the CPU microseconds of one call after a warm-up.
"""

import json
import sys
import time

from bench.http.peers.tools import prepare_toolsets
from cleats import app
from cleats.contract.outcome import Done
from cleats.runtime.background_writer import log_to_stderr
from cleats.runtime.call import ToolCall
from cleats.runtime.server_status import ServerStatus

WARM_UP_CALLS = 200


async def main(tool: str, arguments: str, seconds: float) -> None:
    vitals = ServerStatus()
    settings, toolsets = prepare_toolsets(vitals)
    tool_arguments = json.loads(arguments)
    async with app.open_dispatcher(settings, toolsets, vitals) as dispatcher:

        async def call() -> None:
            outcome = await dispatcher.dispatch(ToolCall(tool=tool, arguments=tool_arguments, id="1"))
            assert isinstance(outcome, Done), outcome

        for _ in range(WARM_UP_CALLS):
            await call()
        calls, end, cpu_start = 0, time.monotonic() + seconds, time.process_time()
        while time.monotonic() < end:
            await call()
            calls += 1
        print((time.process_time() - cpu_start) / calls * 1e6)


if __name__ == "__main__":
    log_to_stderr("info")
    app.run_server(main, sys.argv[1], sys.argv[2], float(sys.argv[3]))
