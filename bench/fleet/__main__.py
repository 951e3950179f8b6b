"""The command: `python -m bench.fleet`."""

import argparse
import os
import sys

from bench import ratios
from bench.calls import machine
from bench.code.corpora import ALL_CORPORA
from bench.fleet import measure, searching
from bench.fleet.measure import FleetRuns
from bench.fleet.model import FleetModel, render_table
from bench.fleet.world import run_postgres


def main() -> int:
    """Return 0 after measuring everything."""
    options = _parse_options()
    if options.share:
        print(_report_sharing(options.share))
        return 0
    before = machine.read_cpu_times()
    rate = measure.measure_records(options.measure_records)
    one = measure.measure_runs(1, options.runs)
    two = measure.measure_runs(2, options.runs)
    others_share = machine.read_cpu_times().compute_others_share(before)
    model = FleetModel(cpu=one.cpu, transactions=one.transactions, records=rate)
    print(_render_report(one, two, rate, model, others_share))
    expected = model.compute_rate(_available_cores(2))
    ratios.write_ratios(
        options.ratios,
        [
            ratios.Ratio("runs of two workers", "one worker", two.rate / one.rate, more=True),
            ratios.Ratio("runs of two workers", "the model", two.rate / expected, more=True),
        ],
        others_share,
    )
    return 0


def _report_sharing(name: str) -> str:
    corpus = next(candidate for candidate in ALL_CORPORA if candidate.name == name)
    with run_postgres() as url:
        cost = searching.measure_sharing(corpus.prepare(), url)
    return (
        f"{cost.files:,} files built and published in {cost.build_seconds:.0f} s, "
        f"{cost.bytes / (1 << 20):.0f} MiB shared; both readers answer as the embedded index does; "
        f"a changed file reached both after {cost.update_seconds:.1f} s, {cost.answers} answers "
        "meanwhile, each whole"
    )


def _available_cores(workers: int) -> int:
    return min(workers, os.cpu_count() or 1)


def _render_report(one: FleetRuns, two: FleetRuns, rate: float, model: FleetModel, others_share: float) -> str:
    expected = model.compute_rate(_available_cores(2))
    fleets = [
        f"{fleet.workers} worker(s): {fleet.runs} runs in {fleet.seconds:.1f} s, {fleet.rate:.3f}"
        f" runs/s, {fleet.cpu:.2f} s CPU a run"
        for fleet in (one, two)
    ]
    worked_out = f"worked out for two: {expected:.3f} runs/s, measured {two.rate / expected:.2f}x"
    storage = (
        f"a run leaves {one.rows:.0f} rows and {one.row_bytes / 1024:.0f} KiB in the database, "
        f"{one.disk_bytes / (1 << 20):.1f} MiB on shared storage"
    )
    records = f"{measure.CONNECTION_COUNT} connections: {rate:.0f} synced records/s; a run makes {one.transactions:.0f}"
    return "\n".join(
        [
            "# A fleet",
            "",
            *fleets,
            f"two over one: {two.rate / one.rate:.2f}x",
            worked_out,
            storage,
            records,
            "",
            *render_table(model),
            "",
            f"other processes used {others_share:.0%} of the machine meanwhile",
        ]
    )


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.fleet",
        description="Drive real runs with one and with two workers on a real PostgreSQL, and "
        "work out what more of them would do.",
    )
    parser.add_argument("--runs", type=int, default=6, help="runs for each fleet")
    parser.add_argument("--records", type=int, default=2000, help="records for the database")
    parser.add_argument(
        "--share",
        choices=[corpus.name for corpus in ALL_CORPORA],
        help="instead: share the index of a corpus with two servers, and check every answer",
    )
    ratios.add_ratios_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
