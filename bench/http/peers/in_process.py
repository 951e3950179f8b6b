"""The same call without HTTP: `python -m bench.http.peers.in_process TOOL JSON SECONDS`.

Prints the CPU microseconds that one call takes, once it is warm.
"""

import json
import sys
import time

from bench.http.peers.tools import prepared
from cleats import app
from cleats.contract.outcome import Done
from cleats.runtime.call import Call
from cleats.runtime.journal import log_to_stderr
from cleats.runtime.vitals import Vitals

WARM_UP = 200


async def main(tool: str, arguments: str, seconds: float) -> None:
    vitals = Vitals()
    settings, served = prepared(vitals)
    given = json.loads(arguments)
    async with app.dispatching(settings, served, vitals) as dispatcher:

        async def call() -> None:
            outcome = await dispatcher.dispatch(Call(tool=tool, arguments=given, id="1"))
            assert isinstance(outcome, Done), outcome

        for _ in range(WARM_UP):
            await call()
        calls, end, begun = 0, time.monotonic() + seconds, time.process_time()
        while time.monotonic() < end:
            await call()
            calls += 1
        print((time.process_time() - begun) / calls * 1e6)


if __name__ == "__main__":
    log_to_stderr("info")
    app.run(main, sys.argv[1], sys.argv[2], float(sys.argv[3]))
