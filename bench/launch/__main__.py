"""The command: `python -m bench.launch`."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence

from bench import ratios
from bench.calls import machine
from bench.calls.process import Broken
from bench.launch import measure, report
from bench.launch.measure import Figures

SIZES = (1, 1_000, 10_000)

Case = Callable[[], Mapping[str, Figures]]


def main() -> int:
    """Exit 0 when everything could be measured, else 1; a missed target does not count."""
    options = _options()
    if sys.platform != "linux":
        print("bench.launch reads /proc, so it runs on Linux only", file=sys.stderr)
        return 2
    before = machine.read()
    problems: list[str] = []
    rounds: dict[str, dict[str, list[Figures]]] = {}
    for number in range(options.rounds):
        for case, work in _cases(options).items():
            print(f"{case}, round {number + 1}", file=sys.stderr, flush=True)
            try:
                for name, figures in work().items():
                    rounds.setdefault(case, {}).setdefault(name, []).append(figures)
            except Broken as error:
                problems.append(f"{case}: {error}")
    others = machine.read().others_since(before)
    print(report.text(rounds, others, problems))
    ratios.write(options.ratios, report.ratios(rounds), others)
    return 1 if problems else 0


def _cases(options: argparse.Namespace) -> dict[str, Case]:
    cases: dict[str, Case] = {
        f"{count:,} runs": lambda count=count: measure.reading(count)  # type: ignore[misc]
        for count in options.sizes
    }
    cases["the journal"] = lambda: {
        "cleats": measure.journal(options.steps),
        "sqlite": measure.bare_journal(options.steps),
    }
    cases["the start"] = lambda: {
        "cleats": measure.starting("launch"),
        "assets": measure.starting("assets"),
    }
    if options.run:
        cases["the sample"] = lambda: {"cleats": measure.whole_run()}
    return cases


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.launch", description="What runs cost.")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument(
        "--sizes", type=_sizes, default=SIZES, metavar="N,N", help="runs (default 1,1000,10000)"
    )
    parser.add_argument("--steps", type=int, default=2000, help="steps recorded (default 2000)")
    parser.add_argument(
        "--no-run", dest="run", action="store_false", help="leave the whole run out"
    )
    ratios.add_option(parser)
    return parser.parse_args()


def _sizes(value: str) -> Sequence[int]:
    return [int(each) for each in value.split(",")]


if __name__ == "__main__":
    sys.exit(main())
