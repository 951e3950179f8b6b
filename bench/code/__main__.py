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
from bench.calls.servers import NotInstalled
from bench.code import heldout, measure, quality, report
from bench.code.corpora import CORPORA, Corpus

ASKED = 100
"""Questions whose times are taken."""


def main() -> int:
    """Exit 0 when every contestant answered, else 1."""
    options = _options()
    if sys.platform != "linux":
        print("bench.code reads /proc, so it runs on Linux only", file=sys.stderr)
        return 2
    before = machine.read()
    chosen = [corpus for corpus in CORPORA if corpus.name in options.corpora]
    problems: list[str] = []
    costs: dict[str, dict[str, measure.Figures]] = {}
    outcomes: list[quality.Outcome] = []
    with tempfile.TemporaryDirectory() as name:
        for corpus in chosen:
            if not options.quality_only:
                costs[_title(corpus)] = _costs(corpus, options.only, Path(name), problems)
        if not options.costs_only:
            for task in quality.tasks([each for each in chosen if each.name != "large"]):
                print(f"{task.corpus}, {task.kind}", file=sys.stderr, flush=True)
                outcomes += quality.measure(task, Path(name), problems)
    others = machine.read().others_since(before)
    print(report.text(costs, outcomes, others, problems))
    ratios.write(options.ratios, report.ratios(costs, outcomes), others)
    if options.json is not None:
        document = {
            "costs": {
                title: {name: asdict(each) for name, each in figures.items()}
                for title, figures in costs.items()
            },
            "answers": [asdict(each) for each in outcomes],
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if problems else 0


def _costs(
    corpus: Corpus, only: Sequence[str], cache: Path, problems: list[str]
) -> dict[str, measure.Figures]:
    try:
        corpus.prepare()
    except NotInstalled as error:
        problems.append(f"{corpus.name}: {error}")
        return {}
    questions = [case.question for case in heldout.prepare(corpus)[1][:ASKED]]
    done = {}
    for name in only:
        print(f"{corpus.name}, {name}", file=sys.stderr, flush=True)
        done[name] = measure.figures(name, corpus, questions, cache / "costs", problems)
    return done


def _title(corpus: Corpus) -> str:
    corpus.prepare()
    files = list(corpus.files())
    size = sum(file.stat().st_size for file in files) / 1e6
    packages = ", ".join(str(package) for package in corpus.packages)
    return f"{corpus.name}: {packages}; {len(files):,} files, {size:.0f} MB"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.code", description="What finding code costs, and how well it finds."
    )
    names = [corpus.name for corpus in CORPORA]
    parser.add_argument("--corpora", type=_names, default=names[:2], metavar="A,B", help=str(names))
    parser.add_argument("--only", type=_names, default=list(measure.CONTESTANTS), metavar="A,B")
    parser.add_argument("--costs-only", action="store_true")
    parser.add_argument("--quality-only", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure here")
    ratios.add_option(parser)
    return parser.parse_args()


def _names(value: str) -> Sequence[str]:
    return value.split(",")


if __name__ == "__main__":
    sys.exit(main())
