"""The command: `python -m bench.all`."""

import argparse
import json
import sys
from pathlib import Path

from bench.all import report, running


def main() -> int:
    """Return 0 if every benchmark ran, 1 if one did not, 2 if a file is not a saved run."""
    options = _parse_options()
    if options.compare:
        try:
            old, new = map(running.read_saved_run, options.compare)
        except (OSError, ValueError) as error:
            print(error, file=sys.stderr)
            return 2
        print(report.render_comparison(old, new))
        return 0
    run = running.run_benchmarks(options.only or running.list_benchmarks(), quick=options.quick)
    print(report.render_report(run))
    if options.save is not None:
        options.save.write_text(json.dumps(run.as_json(), indent=2) + "\n", encoding="utf-8")
    return int(any(outcome.problem for outcome in run.outcomes.values()))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.all",
        description="Every benchmark in one go; one table of ratios. Details go to stderr.",
    )
    parser.add_argument("--only", nargs="+", choices=running.list_benchmarks(), help="only these")
    parser.add_argument("--quick", action="store_true", help="one short round each: to see that they work")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep this run")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="compare two kept runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
