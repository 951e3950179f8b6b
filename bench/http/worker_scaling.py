"""Searches a second with one worker and with more: `python -m bench.http.worker_scaling`.

The client is one process on the same machine; rounds with different numbers of workers take turns.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from time import monotonic

from bench.calls import machine
from bench.http.load_client import LoadConnection
from bench.http.load_server import QUERIES, prepare_home, read_cpu_seconds, serve_workers


async def search_for(url: str, connections: int, seconds: float) -> int:
    """Search on many connections for a while; return the number of searches.

    Raises:
        AssertionError: An answer was not 200 or held no hit.
    """
    end, count = monotonic() + seconds, 0

    async def search(number: int) -> None:
        nonlocal count
        connection = LoadConnection(url)
        while monotonic() < end:
            query = QUERIES[(number + count) % len(QUERIES)]
            answer = await connection.request("POST", "/search", {"query": query})
            assert answer.status == 200, answer.body
            assert b'"file":' in answer.body or b'"path":' in answer.body, answer.body
            count += 1
        connection.close()

    await asyncio.gather(*(search(number) for number in range(connections)))
    return count


def main() -> int:
    """Return 0 after the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.http.worker_scaling", description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers (default 1 2)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each (default 3)")
    parser.add_argument("--seconds", type=float, default=10, help="of load in a round (default 10)")
    parser.add_argument("--connections", type=int, default=16, help="of the client (default 16)")
    options = parser.parse_args()
    rates: dict[int, list[float]] = {count: [] for count in options.workers}
    with tempfile.TemporaryDirectory() as name:
        home = prepare_home(Path(name))
        for _ in range(options.rounds):
            for worker_count in options.workers:
                with serve_workers(home, worker_count) as server:
                    asyncio.run(search_for(server.url, options.connections, 2))
                    before, cpu_before = machine.read_cpu_times(), read_cpu_seconds(server.pid)
                    started_at = monotonic()
                    count = asyncio.run(search_for(server.url, options.connections, options.seconds))
                    elapsed, cpu = monotonic() - started_at, read_cpu_seconds(server.pid) - cpu_before
                    others_share = machine.read_cpu_times().compute_others_share(before)
                rates[worker_count].append(count / elapsed)
                print(
                    f"{worker_count} workers: {count / elapsed:7.1f} searches/s, {cpu / count * 1000:.2f} ms CPU each, "
                    f"{cpu / elapsed:.2f} cores used; other processes took {others_share:.0%}",
                    flush=True,
                )
    best = {count: max(values) for count, values in rates.items()}
    for count in options.workers[1:]:
        print(f"{count} workers answer {best[count] / best[options.workers[0]]:.2f}x the searches (best rounds)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
