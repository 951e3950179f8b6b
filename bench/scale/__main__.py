"""The command: `python -m bench.scale`."""

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench import ratios
from bench.calls import machine
from bench.code import ours
from bench.code.measure import PEERS_FOLDER
from cleats.toolsets.code.discovery.files import discover_files

FILE_COUNTS: Final = (1_000, 100_000, 1_000_000)
FOLDER_FILES: Final = 500
"""Files in each generated folder."""
FOLDERS_PER_LEVEL: Final = 100
EXTENSIONS: Final = ("py", "go", "ts", "md", "json")
QUESTION_COUNT: Final = 60


class DiscoveryCost(NamedTuple):
    """The cost of listing one folder."""

    files: int
    cpu: float
    bare_cpu: float
    """CPU seconds of a walk that only reads the status of every file."""
    megabytes: float
    """Memory that the process needed on top of what it had before."""


def main() -> int:
    """Return 0."""
    options = _parse_options()
    before = machine.read_cpu_times()
    costs = []
    for count in options.files:
        print(f"{count:,} files", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
            generate_files(Path(folder), count)
            costs.append(measure_discovery(Path(folder), options.rounds))
    lines = render_discovery(costs)
    if options.root:
        with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
            lines += measure_repository(options.root.resolve(), options.cache or Path(folder), options.rounds)
    others_share = machine.read_cpu_times().compute_others_share(before)
    print("\n".join([*lines, f"others took {others_share:.0%} of the CPUs"]))
    found = [r for cost in costs for r in ratios.divide_figures(_name_row(cost), cost.cpu, {"bare": cost.bare_cpu})]
    ratios.write_ratios(options.ratios, found, others_share)
    return 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--files", type=int, nargs="*", default=FILE_COUNTS, help="numbers of files to generate")
    parser.add_argument("--root", type=Path, help="also measure an index of this repository; a file of it is changed")
    parser.add_argument("--cache", type=Path, help="keep that index here, and use one that is there")
    parser.add_argument("--scratch", type=Path, help="where to generate files")
    parser.add_argument("--rounds", type=int, default=3)
    ratios.add_ratios_option(parser)
    return parser.parse_args()


def generate_files(root: Path, count: int) -> None:
    """Write a number of small files in nested folders."""
    for first in range(0, count, FOLDER_FILES):
        level, number = divmod(first // FOLDER_FILES, FOLDERS_PER_LEVEL)
        folder = root / f"part{level}" / f"package{number}"
        folder.mkdir(parents=True)
        for position in range(first, min(count, first + FOLDER_FILES)):
            (folder / f"module_{position}.{EXTENSIONS[position % len(EXTENSIONS)]}").write_bytes(b"x = 1\n")


def measure_discovery(root: Path, rounds: int) -> DiscoveryCost:
    """Measure in processes of their own, so that the memory is that of one discovery."""
    context = multiprocessing.get_context("fork")
    with context.Pool(1, maxtasksperchild=1) as pool:
        results = [pool.apply(_discover_once, (root,)) for _ in range(rounds)]
    return min(results, key=lambda cost: cost.cpu)


def _discover_once(root: Path) -> DiscoveryCost:
    bare_cpu = _measure_cpu(lambda: _walk_bare(root))
    memory_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found: list[Any] = []
    cpu = _measure_cpu(lambda: found.append(discover_files(root)))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_before
    return DiscoveryCost(len(found[0].files), cpu, bare_cpu, memory / 1024)


def _walk_bare(root: Path) -> int:
    return sum(os.lstat(f"{folder}/{name}").st_size for folder, _, names in os.walk(root) for name in names)


def _measure_cpu(work: Callable[[], object]) -> float:
    start = sum(os.times()[:4])
    work()
    return sum(os.times()[:4]) - start


def _name_row(cost: DiscoveryCost) -> str:
    return f"discovery of {cost.files:,} files"


def render_discovery(costs: Sequence[DiscoveryCost]) -> list[str]:
    """Return a line for each number of files."""
    lines = [f"{'':32}{'CPU s':>8}{'bare walk':>11}{'µs a file':>11}{'MB':>8}{'bytes a file':>14}"]
    for cost in costs:
        shares = f"{cost.cpu / cost.files * 1e6:11.1f}{cost.megabytes:8.0f}{cost.megabytes * 2**20 / cost.files:14.0f}"
        lines.append(f"{_name_row(cost):32}{cost.cpu:8.2f}{cost.bare_cpu:11.2f}{shares}")
    return lines


def measure_repository(root: Path, cache: Path, rounds: int) -> list[str]:
    """Measure an index: built if there is none, unchanged, with one file changed, and searched."""
    lines = []
    built = ours.build_index(root, cache)
    parsed = json.loads(
        ours.run_measured([sys.executable, str(PEERS_FOLDER / "bare.py"), "parse", str(root)], cache)[1]
    )
    lines.append(f"first build: {built.cpu:.1f} s of CPU, parsing alone {parsed['cpu']:.1f} s")
    idle = min(ours.build_index(root, cache).cpu for _ in range(rounds))
    changed = min(_measure_change(root, cache, number) for number in range(rounds))
    lines.append(f"nothing changed: {idle:.2f} s of CPU, one file changed: {changed:.2f} s")
    for name, times in _measure_questions(root, cache, rounds).items():
        times.sort()
        median, slowest = statistics.median(times), times[int(0.99 * (len(times) - 1))]
        lines.append(f"search, {name}: median {median:.1f} ms of CPU, 99th percentile {slowest:.1f} ms")
    return lines


def _measure_change(root: Path, cache: Path, number: int) -> float:
    """Add a comment to a source file and update the index; the file is restored."""
    path = max(root.rglob("*.py"), key=lambda path: (path.stat().st_size < 1 << 16, path.stat().st_size), default=None)
    path = path or next(root.rglob("*.go"))
    text = path.read_bytes()
    try:
        path.write_bytes(text + f"\n{'#' if path.suffix == '.py' else '//'} change {number}\n".encode())
        return ours.build_index(root, cache).cpu
    finally:
        path.write_bytes(text)


def _measure_questions(root: Path, cache: Path, rounds: int) -> dict[str, list[float]]:
    """Return the best CPU time of each question, in milliseconds."""
    with ours.open_engine(root, cache) as engine:
        paths = [path for columns in engine.shards for path in columns.paths.values()]
        stems = [" ".join(path.rsplit(".", 1)[0].replace("_", " ").split("/")[-3:]) for path in sorted(paths)]
        stems = [stem for stem in stems if stem.split()]  # nothing is left of `.gitignore`
        names = list(islice(stems, 0, None, max(1, len(stems) // QUESTION_COUNT)))
        questions = {
            "sentences": [f"how does {name} work" for name in names],
            "names": [name.split()[-1] for name in names],
            "defects": [f"fix wrong result of {name}" for name in names],
        }
        times: dict[str, list[float]] = {}
        for kind, texts in questions.items():
            costs = [[_measure_process(engine, text) for _ in range(rounds + 1)] for text in texts]
            times[kind] = [min(repeated) for repeated in costs]
    return times


def _measure_process(engine: Any, text: str) -> float:
    start = time.process_time()
    ours.search_code(engine, text)
    return (time.process_time() - start) * 1e3


if __name__ == "__main__":
    sys.exit(main())
