"""The command: `python -m bench.launch`."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

from bench import ratios
from bench.calls import machine
from bench.calls.process import BenchmarkError
from bench.launch import measure, report
from bench.launch.measure import LaunchFigures

RUN_COUNTS = (1, 1_000, 10_000)

LaunchCase = Callable[[], Mapping[str, LaunchFigures]]


def main() -> int:
    """Return 0 if everything could be measured, else 1; a missed target does not count."""
    options = _parse_options()
    if sys.platform != "linux":
        print("bench.launch reads /proc, so it runs on Linux only", file=sys.stderr)
        return 2
    before = machine.read_cpu_times()
    problems: list[str] = []
    rounds: dict[str, dict[str, list[LaunchFigures]]] = {}
    for number in range(options.rounds):
        for case, work in _build_cases(options).items():
            print(f"{case}, round {number + 1}", file=sys.stderr, flush=True)
            try:
                for name, figures in work().items():
                    rounds.setdefault(case, {}).setdefault(name, []).append(figures)
            except BenchmarkError as error:
                problems.append(f"{case}: {error}")
    others_share = machine.read_cpu_times().compute_others_share(before)
    print(report.render_report(rounds, others_share, problems))
    ratios.write_ratios(options.ratios, report.compute_ratios(rounds), others_share)
    return 1 if problems else 0


def _build_cases(options: argparse.Namespace) -> dict[str, LaunchCase]:
    cases: dict[str, LaunchCase] = {
        f"{count:,} runs": lambda count=count: measure.measure_reading(count)  # type: ignore[misc]
        for count in options.sizes
    }
    cases["the journal"] = lambda: {
        "cleats": measure.measure_journal(options.steps),
        "sqlite": measure.measure_bare_journal(options.steps),
    }
    cases["the start"] = lambda: {
        "cleats": measure.measure_start("launch"),
        "assets": measure.measure_start("assets"),
    }
    if options.run:
        cases["the sample"] = lambda: {"cleats": measure.measure_whole_run()}
    return cases


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.launch", description="What runs cost.")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument(
        "--sizes", type=_parse_sizes, default=RUN_COUNTS, metavar="N,N", help="runs (default 1,1000,10000)"
    )
    parser.add_argument("--steps", type=int, default=2000, help="steps recorded (default 2000)")
    parser.add_argument("--no-run", dest="run", action="store_false", help="leave the whole run out")
    ratios.add_ratios_option(parser)
    return parser.parse_args()


def _parse_sizes(value: str) -> Sequence[int]:
    return [int(number) for number in value.split(",")]


if __name__ == "__main__":
    sys.exit(main())
