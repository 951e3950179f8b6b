"""The command: `python -m bench.start`."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import msgspec

from bench import ratios
from bench.calls import machine, wire
from bench.calls.measure import START_TIMEOUT_SECONDS
from bench.calls.process import BenchmarkError, limit_time, run_server
from bench.calls.servers import PEERS_FOLDER
from bench.ratios import Ratio

BASELINE_NAME = "stock SDK"
SERVER_ARGUMENTS: Mapping[str, Sequence[str]] = {
    "cleats serve explore skills": ("-m", "cleats", "serve", "explore", "skills"),
    "cleats serve": ("-m", "cleats", "serve"),
    BASELINE_NAME: (str(PEERS_FOLDER / "stock_sdk.py"),),
    "bare asyncio": (str(PEERS_FOLDER / "bare_asyncio.py"),),
}
"""The arguments of Python for each server. `cleats install` registers the first one."""

MAX_RATIO = 0.55
"""The promise: both answers in this share of the time of the stock SDK, warm and cold."""


@dataclass(frozen=True, slots=True)
class StartSample:
    """One start, in milliseconds since the command."""

    initialize_ms: float
    list_ms: float
    cpu_ms: float


METRICS: Mapping[str, str] = {
    "initialize_ms": "to initialize, ms",
    "list_ms": "to tools/list, ms",
    "cpu_ms": "CPU to tools/list, ms",
}


@dataclass(slots=True)
class StartRow:
    """The starts of one server in one state of its byte code."""

    name: str
    state: str
    samples: list[StartSample] = field(default_factory=list)

    def compute_best(self, metric: str) -> float:
        """Return the best round: noise only ever makes a start slower."""
        return min(self._list_values(metric))

    def compute_median(self, metric: str) -> float:
        return median(self._list_values(metric))

    def _list_values(self, metric: str) -> list[float]:
        return [getattr(sample, metric) for sample in self.samples]


def measure_start(arguments: Sequence[str]) -> StartSample:
    """Start a server and time its first two answers.

    Raises:
        BenchmarkError: The server does not answer, or gives a wrong answer.
    """
    start_time = time.perf_counter()
    with run_server([sys.executable, *arguments]) as server, limit_time(START_TIMEOUT_SECONDS):
        server.send(wire.build_initialize())
        hello = server.receive_line()
        initialized_at = time.perf_counter()
        wire.check_initialized(hello)
        server.send(wire.build_initialized() + b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
        listing = server.receive_line()
        listed_at, cpu = time.perf_counter(), server.read_usage().cpu
        if not msgspec.json.decode(listing).get("result", {}).get("tools"):
            raise BenchmarkError(f"no list of tools: {listing[:200]!r}")
    return StartSample((initialized_at - start_time) * 1e3, (listed_at - start_time) * 1e3, cpu * 1e3)


def measure_rows(rounds: int) -> list[StartRow]:
    """Start every server in turns, so that a slow moment of the machine affects all of them."""
    rows = [StartRow(name, state) for state in ("warm", "cold") for name in SERVER_ARGUMENTS]
    for arguments in SERVER_ARGUMENTS.values():
        measure_start(arguments)  # compiles the byte code
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for row in rows:
            with tempfile.TemporaryDirectory() as folder:
                options = ("-X", f"pycache_prefix={folder}") if row.state == "cold" else ()
                row.samples.append(measure_start([*options, *SERVER_ARGUMENTS[row.name]]))
    return rows


def compute_ratios(rows: Sequence[StartRow]) -> list[Ratio]:
    """Compute the ratios of our servers to each peer in the same state."""
    return [
        Ratio(f"{row.name}, {row.state}, {heading}", peer.name, row.compute_best(metric) / peer.compute_best(metric))
        for row in rows
        if row.name.startswith("cleats")
        for peer in rows
        if peer.state == row.state and not peer.name.startswith("cleats")
        for metric, heading in METRICS.items()
    ]


def render_report(rows: Sequence[StartRow], others_share: float) -> Iterator[str]:
    """Render the table, the best round with its ratio to the stock SDK and the median, and the promise."""
    yield f"Rounds: {len(rows[0].samples)}; best, ratio to {BASELINE_NAME}, (median)."
    yield f"Other processes took {others_share:.0%} of the CPUs."
    for state in ("warm", "cold"):
        measured = [row for row in rows if row.state == state]
        [baseline] = [row for row in measured if row.name == BASELINE_NAME]
        yield ""
        yield f"{state + ' byte code':28}" + "".join(f"{heading:>28}" for heading in METRICS.values())
        for row in measured:
            cells = (
                f"{row.compute_best(metric):,.0f} {row.compute_best(metric) / baseline.compute_best(metric):.2f}x"
                f" ({row.compute_median(metric):,.0f})"
                for metric in METRICS
            )
            yield f"{row.name:28}" + "".join(f"{cell:>28}" for cell in cells)
    yield ""
    for ratio in compute_ratios(rows):
        if ratio.beside == BASELINE_NAME:
            verdict = "pass" if ratio.value <= MAX_RATIO else "FAIL"
            yield f"  {verdict}  {ratio.name} at most {MAX_RATIO}x {BASELINE_NAME}: {ratio.value:.2f}x"


def main() -> int:
    """Return 0 if every server answered, else 1; a missed target does not count."""
    parser = argparse.ArgumentParser(prog="python -m bench.start", description="How long a server takes to start.")
    parser.add_argument("--rounds", type=int, default=8, help="rounds (default 8)")
    ratios.add_ratios_option(parser)
    options = parser.parse_args()
    if sys.platform != "linux":
        print("bench.start reads /proc, so it runs on Linux only", file=sys.stderr)
        return 2
    before = machine.read_cpu_times()
    try:
        rows = measure_rows(options.rounds)
    except BenchmarkError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    others_share = machine.read_cpu_times().compute_others_share(before)
    print("\n".join(render_report(rows, others_share)))
    ratios.write_ratios(options.ratios, compute_ratios(rows), others_share)
    return 0


if __name__ == "__main__":
    sys.exit(main())
