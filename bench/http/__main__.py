"""The command: `python -m bench.http`."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import asdict
from pathlib import Path

from bench import ratios
from bench.calls import machine
from bench.calls.process import BenchmarkError
from bench.http import measure, report
from bench.http.measure import BenchRoute, RouteSample
from cleats import app
from cleats.settings import Settings

OUR_MODULE = "bench.http.peers.cleats_web"
BARE_MODULE = "bench.http.peers.bare_starlette"
REPOSITORY_ROOT = Path(__file__).parents[2]

SEARCH_BODY = '{"query": "parse content length"}'
BENCH_ROUTES = (
    BenchRoute("GET /health", "/health"),
    BenchRoute("POST /tools/echo", "/tools/echo", '{"text": "hello"}', tool="echo"),
    BenchRoute("POST /tools/check_status", "/tools/check_status", "{}", tool="check_status"),
    # One at a time, as without HTTP: concurrent searches slow each other down.
    BenchRoute("POST /search", "/search", SEARCH_BODY, tool="search", connections=1),
)
STREAM_COUNT = 64


def main() -> int:
    """Return 0 if every server answered correctly, else 1; a missed target does not count."""
    options = _parse_options()
    if shutil.which("wrk") is None or sys.platform != "linux":
        print("bench.http skipped: it needs wrk and Linux (apt-get install wrk)", file=sys.stderr)
        return 0
    notes: list[str] = []
    tool_names = {tool.name for tool in app.build_registry(Settings())} | {"echo"}
    routes = [route for route in BENCH_ROUTES if not route.tool or route.tool in tool_names]
    notes += [f"{item.name}: not served yet" for item in BENCH_ROUTES if item not in routes]
    samples: dict[str, list[RouteSample]] = {}
    in_process_costs: dict[str, list[float]] = {}
    hang_up_times: list[float] = []
    before = machine.read_cpu_times()
    try:
        with _prepare_environment(indexed="search" in tool_names):
            for number in range(options.rounds):
                print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
                _run_round(routes, options.seconds, samples, in_process_costs, hang_up_times)
    except BenchmarkError as error:
        notes.append(f"FAIL  {error}")
    others_share = machine.read_cpu_times().compute_others_share(before)
    print(report.render_report(samples, in_process_costs, hang_up_times, others_share, notes))
    ratios.write_ratios(options.ratios, report.compute_ratios(samples, in_process_costs), others_share)
    if options.json is not None:
        document = {
            "routes": {name: [asdict(item) for item in runs] for name, runs in samples.items()},
            "inProcess": in_process_costs,
            "hangUpMs": hang_up_times,
            "othersCpuShare": others_share,
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return int(any(note.startswith("FAIL") for note in notes))


def _run_round(
    routes: list[BenchRoute],
    seconds: float,
    samples: dict[str, list[RouteSample]],
    in_process_costs: dict[str, list[float]],
    hang_up_times: list[float],
) -> None:
    with measure.run_peer(BARE_MODULE) as (server, url):
        sample = measure.measure_load(server, url, BenchRoute(report.BARE_ROUTE, "/health"), seconds)
        samples.setdefault(report.BARE_ROUTE, []).append(sample)
    with measure.run_peer(OUR_MODULE) as (server, url):
        for route in routes:
            sample = measure.measure_load(server, url, route, seconds)
            samples.setdefault(route.name, []).append(sample)
        hang_up_times.append(measure.measure_hang_up(url, STREAM_COUNT))
    for route in routes:
        if route.tool:
            in_process_costs.setdefault(route.tool, []).append(measure.measure_in_process(route, seconds))


@contextmanager
def _prepare_environment(*, indexed: bool) -> Iterator[None]:
    """Set up a home in which the code of this project is indexed if search is served."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        project = Path(name) / "project"
        shutil.copytree(REPOSITORY_ROOT / "src", project, ignore=shutil.ignore_patterns("__pycache__"))
        os.environ |= {
            "HOME": name,
            "CLEATS_PROJECT_DIR": str(project),
            "CLEATS_CACHE_DIR": f"{name}/cache",
            "CLEATS_DATA_DIR": f"{name}/data",
            "PYTHONPATH": str(REPOSITORY_ROOT),
        }
        if indexed:
            command = [sys.executable, "-m", "cleats", "call", "build_index"]
            arguments = json.dumps({"repoPath": str(project)})
            completed = subprocess.run([*command, arguments], capture_output=True, text=True, check=False)
            if completed.returncode:
                raise BenchmarkError(f"build_index: {completed.stdout}{completed.stderr}")
        yield


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.http",
        description="What a request costs: our routes beside a bare one, and beside no HTTP.",
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--seconds", type=int, default=3, help="of load on a route (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure here")
    ratios.add_ratios_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
