"""The command: `python -m bench.calls`."""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench import ratios
from bench.calls import machine, report
from bench.calls.measure import CallSample, measure_round, rehearse_start
from bench.calls.process import BenchmarkError
from bench.calls.report import ServerRow
from bench.calls.servers import BENCH_SERVERS, PeerNotInstalledError, PeerServer


@dataclass(slots=True)
class CallContestant:
    """A server in this run: its command after it is prepared, then its rounds."""

    server: PeerServer
    command: Sequence[str] = ()
    rounds: list[CallSample] = field(default_factory=list)
    problem: str | None = None

    def prepare(self) -> None:
        try:
            self.command = self.server.prepare()
            rehearse_start(self.command)
        except PeerNotInstalledError as error:
            self.problem = f"not installed: {error}"
        except BenchmarkError as error:
            self.problem = f"failed: {error}"

    def run(self, calls: int) -> None:
        try:
            self.rounds.append(measure_round(self.command, calls))
        except BenchmarkError as error:
            self.problem = f"failed in round {len(self.rounds) + 1}: {error}"

    def build_row(self) -> ServerRow:
        row = ServerRow(self.server.name, self.server.title(), problem=self.problem)
        # A server that failed once has no figures: its earlier rounds cannot be trusted.
        return row if self.problem else replace(row, rounds=self.rounds)


def run_contest(servers: Sequence[PeerServer], rounds: int, calls: int) -> tuple[list[ServerRow], float]:
    """Let every server run once per round, each round starting with another one.

    A slow moment of the machine then affects all of them, not all rounds of one. Also return the
    share of the CPUs that other processes took meanwhile.
    """
    contestants = [CallContestant(server) for server in servers]
    for contestant in contestants:
        _print_status(f"preparing {contestant.server.name}")
        contestant.prepare()
    before = machine.read_cpu_times()
    for number in range(rounds):
        _print_status(f"round {number + 1} of {rounds}")
        first = number % len(contestants)
        for contestant in contestants[first:] + contestants[:first]:
            if contestant.problem is None:
                contestant.run(calls)
    others_share = machine.read_cpu_times().compute_others_share(before)
    return [contestant.build_row() for contestant in contestants], others_share


def main() -> int:
    """Return 0 if every server that could be installed answered correctly, else 1.

    A missed target does not count: on a noisy machine a figure is not a test.
    """
    options = _parse_options()
    if sys.platform != "linux":
        _print_status("bench.calls reads /proc, so it runs on Linux only")
        return 2
    # Servers are terminated in `finally` blocks, which a plain SIGTERM would skip.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    servers = [server for server in BENCH_SERVERS if not options.only or server.name in options.only]
    try:
        rows, others_share = run_contest(servers, options.rounds, options.calls)
    except KeyboardInterrupt:
        _print_status("interrupted")
        return 130
    print(report.render_report(rows, options.calls, others_share))
    ratios.write_ratios(options.ratios, report.compute_ratios(rows), others_share)
    if options.json is not None:
        document = report.build_json_report(rows, options.calls, others_share)
        options.json.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return 1 if any((row.problem or "").startswith("failed") for row in rows) else 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.calls",
        description="What a tool call costs: Cleats beside its peers, same tool, same client.",
    )
    parser.add_argument("--rounds", type=_parse_positive, default=5, help="rounds (default 5)")
    parser.add_argument("--calls", type=_parse_positive, default=3000, help="calls per part of a round (default 3000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure here")
    ratios.add_ratios_option(parser)
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=[server.name for server in BENCH_SERVERS],
        help=f"only these servers, of: {', '.join(server.name for server in BENCH_SERVERS)}",
    )
    return parser.parse_args()


def _parse_positive(value: str) -> int:
    number = int(value)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _print_status(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
