"""The command: `python -m bench.fleet`."""

import argparse
import os
import sys

from bench import ratios
from bench.calls import machine
from bench.code.corpora import CORPORA
from bench.fleet import measure, searching
from bench.fleet.measure import Runs
from bench.fleet.model import Model, table
from bench.fleet.world import postgres


def main() -> int:
    """Exit 0 when everything could be measured."""
    options = _options()
    if options.share:
        print(_sharing(options.share))
        return 0
    before = machine.read()
    rate = measure.records(options.records)
    one = measure.whole_runs(1, options.runs)
    two = measure.whole_runs(2, options.runs)
    others = machine.read().others_since(before)
    model = Model(cpu=one.cpu, transactions=one.transactions, records=rate)
    print(_text(one, two, rate, model, others))
    expected = model.rate(_cores(2))
    ratios.write(
        options.ratios,
        [
            ratios.Ratio("runs of two workers", "one worker", two.rate / one.rate, more=True),
            ratios.Ratio("runs of two workers", "the model", two.rate / expected, more=True),
        ],
        others,
    )
    return 0


def _sharing(name: str) -> str:
    corpus = next(each for each in CORPORA if each.name == name)
    with postgres() as url:
        made = searching.shared(corpus.prepare(), url)
    return (
        f"{made.files:,} files built and published in {made.build_seconds:.0f} s, "
        f"{made.bytes / (1 << 20):.0f} MiB shared; both readers answer as the embedded index does; "
        f"a changed file reached both after {made.update_seconds:.1f} s, {made.answers} answers "
        "meanwhile, each whole"
    )


def _cores(workers: int) -> int:
    return min(workers, os.cpu_count() or 1)


def _text(one: Runs, two: Runs, rate: float, model: Model, others: float) -> str:
    expected = model.rate(_cores(2))
    fleets = [
        f"{each.workers} worker(s): {each.runs} runs in {each.seconds:.1f} s, {each.rate:.3f}"
        f" runs/s, {each.cpu:.2f} s CPU a run"
        for each in (one, two)
    ]
    worked_out = f"worked out for two: {expected:.3f} runs/s, measured {two.rate / expected:.2f}x"
    left = (
        f"a run leaves {one.rows:.0f} rows and {one.row_bytes / 1024:.0f} KiB in the database, "
        f"{one.disk_bytes / (1 << 20):.1f} MiB on shared storage"
    )
    records = (
        f"{measure.CONNECTIONS} connections: {rate:.0f} synced records/s; "
        f"a run makes {one.transactions:.0f}"
    )
    return "\n".join(
        [
            "# A fleet",
            "",
            *fleets,
            f"two over one: {two.rate / one.rate:.2f}x",
            worked_out,
            left,
            records,
            "",
            *table(model),
            "",
            f"other processes used {others:.0%} of the machine meanwhile",
        ]
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.fleet",
        description="Drive real runs with one and with two workers on a real PostgreSQL, and "
        "work out what more of them would do.",
    )
    parser.add_argument("--runs", type=int, default=6, help="runs for each fleet")
    parser.add_argument("--records", type=int, default=2000, help="records for the database")
    parser.add_argument(
        "--share",
        choices=[each.name for each in CORPORA],
        help="instead: share the index of a corpus with two servers, and check every answer",
    )
    ratios.add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
