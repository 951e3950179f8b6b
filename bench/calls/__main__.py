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
from bench.calls.measure import Sample, measure, rehearse
from bench.calls.process import Broken
from bench.calls.report import Row
from bench.calls.servers import SERVERS, NotInstalled, Server


@dataclass(slots=True)
class Contestant:
    """A server in this run: its command once it is ready, then its rounds."""

    server: Server
    command: Sequence[str] = ()
    rounds: list[Sample] = field(default_factory=list)
    problem: str | None = None

    def prepare(self) -> None:
        try:
            self.command = self.server.prepare()
            rehearse(self.command)
        except NotInstalled as error:
            self.problem = f"not installed: {error}"
        except Broken as error:
            self.problem = f"failed: {error}"

    def run(self, calls: int) -> None:
        try:
            self.rounds.append(measure(self.command, calls))
        except Broken as error:
            self.problem = f"failed in round {len(self.rounds) + 1}: {error}"

    def row(self) -> Row:
        row = Row(self.server.name, self.server.title(), problem=self.problem)
        # A server that broke once has no figures: what it did before was luck.
        return row if self.problem else replace(row, rounds=self.rounds)


def compete(servers: Sequence[Server], rounds: int, calls: int) -> tuple[list[Row], float]:
    """Let every server run once per round, each round beginning with another one.

    A slow moment of the machine then falls on all of them, not on all rounds of one. Also gives
    the share of the CPUs that other processes took meanwhile.
    """
    contestants = [Contestant(server) for server in servers]
    for contestant in contestants:
        _say(f"preparing {contestant.server.name}")
        contestant.prepare()
    before = machine.read()
    for number in range(rounds):
        _say(f"round {number + 1} of {rounds}")
        turn = number % len(contestants)
        for contestant in contestants[turn:] + contestants[:turn]:
            if contestant.problem is None:
                contestant.run(calls)
    others = machine.read().others_since(before)
    return [contestant.row() for contestant in contestants], others


def main() -> int:
    """Exit 0 when every server that could be installed answered rightly, else 1.

    A missed target does not count: on a noisy machine a figure is not a test.
    """
    options = _options()
    if sys.platform != "linux":
        _say("bench.calls reads /proc, so it runs on Linux only")
        return 2
    # Ending a server is in `finally` blocks, which a plain SIGTERM would skip.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    servers = [server for server in SERVERS if not options.only or server.name in options.only]
    try:
        rows, others = compete(servers, options.rounds, options.calls)
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    print(report.text(rows, options.calls, others))
    ratios.write(options.ratios, report.ratios(rows), others)
    if options.json is not None:
        document = report.as_json(rows, options.calls, others)
        options.json.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return 1 if any((row.problem or "").startswith("failed") for row in rows) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.calls",
        description="What a tool call costs: Cleats beside its peers, same tool, same client.",
    )
    parser.add_argument("--rounds", type=_positive, default=5, help="rounds (default 5)")
    parser.add_argument(
        "--calls", type=_positive, default=3000, help="calls per part of a round (default 3000)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure here")
    ratios.add_option(parser)
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=[server.name for server in SERVERS],
        help=f"only these servers, of: {', '.join(server.name for server in SERVERS)}",
    )
    return parser.parse_args()


def _positive(value: str) -> int:
    number = int(value)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
