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
from bench.calls.process import BenchmarkError
from bench.skills import measure, report, world
from bench.skills.measure import SkillFigures

SKILL_COUNTS = (10, 1_000, 10_000)

CONTESTANT_FUNCTIONS: Mapping[str, Callable[[Path, int], SkillFigures]] = {
    "cleats": measure.measure_cleats,
    "fastmcp": measure.measure_fastmcp,
    "bare": measure.measure_bare,
}


def main() -> int:
    """Return 0 if every contestant answered correctly, else 1; a missed target does not count."""
    options = _parse_options()
    if sys.platform != "linux":
        print("bench.skills reads /proc, so it runs on Linux only", file=sys.stderr)
        return 2
    before = machine.read_cpu_times()
    figures: dict[int, dict[str, list[SkillFigures]]] = {}
    problems: list[str] = []
    for count in options.sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = world.write_skills(Path(name) / "skills", count)
            figures[count] = {
                contestant: _run_rounds(contestant, folder, count, options.rounds, problems)
                for contestant in CONTESTANT_FUNCTIONS
            }
    others_share = machine.read_cpu_times().compute_others_share(before)
    print(report.render_report(figures, others_share, problems))
    ratios.write_ratios(options.ratios, report.compute_ratios(figures), others_share)
    if options.json is not None:
        document = {
            str(count): {name: [asdict(round_figures) for round_figures in rounds] for name, rounds in per_size.items()}
            for count, per_size in figures.items()
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if problems else 0


def _run_rounds(contestant: str, folder: Path, count: int, rounds: int, problems: list[str]) -> list[SkillFigures]:
    figures = []
    for number in range(rounds):
        print(f"{count} skills, {contestant}, round {number + 1}", file=sys.stderr, flush=True)
        try:
            figures.append(CONTESTANT_FUNCTIONS[contestant](folder, count))
        except BenchmarkError as error:
            problems.append(f"{contestant}, {count} skills: {error}")
            break
    return figures


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.skills", description="What a catalogue of skills costs.")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure here")
    parser.add_argument(
        "--sizes", type=_parse_sizes, default=SKILL_COUNTS, metavar="N,N", help="skills (default 10,1000,10000)"
    )
    ratios.add_ratios_option(parser)
    return parser.parse_args()


def _parse_sizes(value: str) -> Sequence[int]:
    return [int(number) for number in value.split(",")]


if __name__ == "__main__":
    sys.exit(main())
