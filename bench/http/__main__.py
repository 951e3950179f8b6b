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
from bench.calls.process import Broken
from bench.http import measure, report
from bench.http.measure import Route, Sample
from cleats import app
from cleats.settings import Settings

OURS = "bench.http.peers.cleats_web"
BARE = "bench.http.peers.bare_starlette"
ROOT = Path(__file__).parents[2]

QUERY = '{"query": "parse content length"}'
ROUTES = (
    Route("GET /health", "/health"),
    Route("POST /tools/echo", "/tools/echo", '{"text": "hello"}', tool="echo"),
    Route("POST /tools/check_status", "/tools/check_status", "{}", tool="check_status"),
    # One at a time, as without HTTP: searches that run side by side slow each other down.
    Route("POST /search", "/search", QUERY, tool="search", connections=1),
)
STREAMS = 64


def main() -> int:
    """Exit 0 when every server answered rightly, else 1; a missed target does not count."""
    options = _options()
    if shutil.which("wrk") is None or sys.platform != "linux":
        print("bench.http skipped: it needs wrk and Linux (apt-get install wrk)", file=sys.stderr)
        return 0
    notes: list[str] = []
    served = {tool.name for tool in app.catalogue(Settings())} | {"echo"}
    routes = [route for route in ROUTES if not route.tool or route.tool in served]
    notes += [f"{each.name}: not served yet" for each in ROUTES if each not in routes]
    samples: dict[str, list[Sample]] = {}
    alone: dict[str, list[float]] = {}
    hung_up: list[float] = []
    before = machine.read()
    try:
        with _world(indexed="search" in served):
            for number in range(options.rounds):
                print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
                _round(routes, options.seconds, samples, alone, hung_up)
    except Broken as error:
        notes.append(f"FAIL  {error}")
    others = machine.read().others_since(before)
    print(report.text(samples, alone, hung_up, others, notes))
    ratios.write(options.ratios, report.ratios(samples, alone), others)
    if options.json is not None:
        document = {
            "routes": {name: [asdict(each) for each in runs] for name, runs in samples.items()},
            "inProcess": alone,
            "hangUpMs": hung_up,
            "othersCpuShare": others,
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return int(any(note.startswith("FAIL") for note in notes))


def _round(
    routes: list[Route],
    seconds: float,
    samples: dict[str, list[Sample]],
    alone: dict[str, list[float]],
    hung_up: list[float],
) -> None:
    with measure.serving(BARE) as (server, url):
        sample = measure.load(server, url, Route(report.BARE, "/health"), seconds)
        samples.setdefault(report.BARE, []).append(sample)
    with measure.serving(OURS) as (server, url):
        for route in routes:
            sample = measure.load(server, url, route, seconds)
            samples.setdefault(route.name, []).append(sample)
        hung_up.append(measure.hang_up(url, STREAMS))
    for route in routes:
        if route.tool:
            alone.setdefault(route.tool, []).append(measure.in_process(route, seconds))


@contextmanager
def _world(*, indexed: bool) -> Iterator[None]:
    """A home of its own, in which the code of this project is indexed when it can be."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        project = Path(name) / "project"
        shutil.copytree(ROOT / "src", project, ignore=shutil.ignore_patterns("__pycache__"))
        os.environ |= {
            "HOME": name,
            "CLEATS_PROJECT_DIR": str(project),
            "CLEATS_CACHE_DIR": f"{name}/cache",
            "CLEATS_DATA_DIR": f"{name}/data",
            "PYTHONPATH": str(ROOT),
        }
        if indexed:
            command = [sys.executable, "-m", "cleats", "call", "build_index"]
            asked = json.dumps({"repoPath": str(project)})
            ended = subprocess.run([*command, asked], capture_output=True, text=True, check=False)
            if ended.returncode:
                raise Broken(f"build_index: {ended.stdout}{ended.stderr}")
        yield


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.http",
        description="What a request costs: our routes beside a bare one, and beside no HTTP.",
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--seconds", type=int, default=3, help="of load on a route (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure here")
    ratios.add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
