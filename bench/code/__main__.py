"""The command: `python -m bench.code`."""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench import ratios
from bench.calls import machine
from bench.calls.servers import PeerNotInstalledError
from bench.code import fix_quality, fixes, heldout, measure, quality, report
from bench.code.corpora import ALL_CORPORA, Corpus

TIMED_QUESTIONS = 100
"""The number of questions whose times are measured."""


def main() -> int:
    """Return 0 if every contestant answered, else 1."""
    options = _parse_options()
    if sys.platform != "linux":
        print("bench.code reads /proc, so it runs on Linux only", file=sys.stderr)
        return 2
    if options.mine_fixes:
        fixes.mine_fix_sets(options.clones)
        return 0
    before = machine.read_cpu_times()
    corpora = [corpus for corpus in ALL_CORPORA if corpus.name in options.corpora]
    problems: list[str] = []
    costs: dict[str, dict[str, measure.SearchFigures]] = {}
    outcomes: list[quality.TaskOutcome] = []
    fix_outcomes: list[fix_quality.FixOutcome] = []
    with tempfile.TemporaryDirectory() as name:
        for corpus in corpora:
            if not options.quality_only:
                costs[_describe_corpus(corpus)] = _measure_costs(corpus, options.only, Path(name), problems)
        if not options.costs_only:
            for task in quality.build_tasks([item for item in corpora if item.name != "large"]):
                print(f"{task.corpus}, {task.kind}", file=sys.stderr, flush=True)
                outcomes += quality.measure_task(task, Path(name), problems)
        if options.clones is not None and not options.costs_only:
            fix_outcomes = fix_quality.measure_fix_sets(options.clones, Path(name))
    others_share = machine.read_cpu_times().compute_others_share(before)
    print(report.render_report(costs, outcomes, others_share, problems))
    if fix_outcomes:
        print(fix_quality.render_fixes(fix_outcomes))
    ratios.write_ratios(options.ratios, report.compute_ratios(costs, outcomes), others_share)
    if options.json is not None:
        document = {
            "costs": {
                title: {name: asdict(item) for name, item in figures.items()} for title, figures in costs.items()
            },
            "answers": [asdict(item) for item in outcomes],
            "fixes": [asdict(item) for item in fix_outcomes],
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if problems else 0


def _measure_costs(
    corpus: Corpus, only: Sequence[str], cache: Path, problems: list[str]
) -> dict[str, measure.SearchFigures]:
    try:
        corpus.prepare()
    except PeerNotInstalledError as error:
        problems.append(f"{corpus.name}: {error}")
        return {}
    questions = [case.question for case in heldout.prepare_cases(corpus)[1][:TIMED_QUESTIONS]]
    figures_by_name = {}
    for name in only:
        print(f"{corpus.name}, {name}", file=sys.stderr, flush=True)
        figures_by_name[name] = measure.measure_contestant(name, corpus, questions, cache / "costs", problems)
    return figures_by_name


def _describe_corpus(corpus: Corpus) -> str:
    corpus.prepare()
    files = list(corpus.iterate_files())
    size = sum(file.stat().st_size for file in files) / 1e6
    packages = ", ".join(str(package) for package in corpus.packages)
    return f"{corpus.name}: {packages}; {len(files):,} files, {size:.0f} MB"


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.code", description="What finding code costs, and how well it finds."
    )
    names = [corpus.name for corpus in ALL_CORPORA]
    parser.add_argument("--corpora", type=_split_names, default=names[:2], metavar="A,B", help=str(names))
    parser.add_argument("--only", type=_split_names, default=list(measure.CONTESTANT_FUNCTIONS), metavar="A,B")
    parser.add_argument("--costs-only", action="store_true")
    parser.add_argument("--quality-only", action="store_true")
    parser.add_argument("--clones", type=Path, metavar="DIR", help="clones (owner+name/repo) for the fix commits")
    parser.add_argument("--mine-fixes", action="store_true", help="list the fix commits of the clones again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure here")
    ratios.add_ratios_option(parser)
    return parser.parse_args()


def _split_names(value: str) -> Sequence[str]:
    return value.split(",")


if __name__ == "__main__":
    sys.exit(main())
