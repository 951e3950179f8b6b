"""The command: `python -m bench.skills`."""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from bench import ratios
from bench.calls import machine
from bench.calls.process import Broken
from bench.skills import measure, report, world
from bench.skills.measure import Figures

SIZES = (10, 1_000, 10_000)

CONTESTANTS: Mapping[str, Callable[[Path, int], Figures]] = {
    "cleats": measure.ours,
    "fastmcp": measure.fastmcp,
    "bare": measure.bare,
}


def main() -> int:
    """Exit 0 when every contestant answered rightly, else 1; a missed target does not count."""
    options = _options()
    if sys.platform != "linux":
        print("bench.skills reads /proc, so it runs on Linux only", file=sys.stderr)
        return 2
    before = machine.read()
    figures: dict[int, dict[str, list[Figures]]] = {}
    problems: list[str] = []
    for count in options.sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = world.write(Path(name) / "skills", count)
            figures[count] = {
                contestant: _rounds(contestant, folder, count, options.rounds, problems)
                for contestant in CONTESTANTS
            }
    others = machine.read().others_since(before)
    print(report.text(figures, others, problems))
    ratios.write(options.ratios, report.ratios(figures), others)
    if options.json is not None:
        document = {
            str(count): {
                name: [asdict(each) for each in rounds] for name, rounds in per_size.items()
            }
            for count, per_size in figures.items()
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if problems else 0


def _rounds(
    contestant: str, folder: Path, count: int, rounds: int, problems: list[str]
) -> list[Figures]:
    done = []
    for number in range(rounds):
        print(f"{count} skills, {contestant}, round {number + 1}", file=sys.stderr, flush=True)
        try:
            done.append(CONTESTANTS[contestant](folder, count))
        except Broken as error:
            problems.append(f"{contestant}, {count} skills: {error}")
            break
    return done


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.skills", description="What a catalogue of skills costs."
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure here")
    parser.add_argument(
        "--sizes", type=_sizes, default=SIZES, metavar="N,N", help="skills (default 10,1000,10000)"
    )
    ratios.add_option(parser)
    return parser.parse_args()


def _sizes(value: str) -> Sequence[int]:
    return [int(each) for each in value.split(",")]


if __name__ == "__main__":
    sys.exit(main())
