"""The cost of indexing and searching one corpus, for Cleats and the others."""

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.calls.process import BenchmarkError, limit_time, run_server
from bench.calls.servers import PeerNotInstalledError
from bench.calls.wire import build_initialize, build_initialized
from bench.code import ours, rivals
from bench.code.corpora import Corpus
from bench.skills.measure import SkillsClient

SERVER_TIMEOUT_SECONDS = 300.0
PEERS_FOLDER = Path(__file__).parent / "peers"

SEARCH_FILTERS: Sequence[dict[str, Any]] = (
    {"lang": "python"},
    {"type": "function"},
    {"path": "**/*.py"},
    {"calls": "get"},
    {"type": "method", "param": "request"},
)


@dataclass(slots=True)
class SearchFigures:
    """The figures of a round: seconds of wall and CPU, milliseconds per question, megabytes."""

    build_wall: float | None = None
    build_cpu: float | None = None
    parse_cpu: float | None = None
    """CPU seconds of parsing the code alone, which no build can avoid."""
    peak: float | None = None
    disk: float | None = None
    idle_wall: float | None = None
    idle_cpu: float | None = None
    update_wall: float | None = None
    update_cpu: float | None = None
    cold: float | None = None
    """Milliseconds from opening the index to the first answer."""
    median: float | None = None
    slowest: float | None = None
    """The slowest of a hundred questions."""
    filtered_median: float | None = None
    filtered_slowest: float | None = None
    stdio_median: float | None = None
    stdio_slowest: float | None = None


def measure_cleats(corpus: Corpus, questions: Sequence[str], cache: Path) -> SearchFigures:
    """Measure our own index: built from scratch, then unchanged, then with one file changed."""
    folder = corpus.prepare()
    figures = SearchFigures()
    shutil.rmtree(cache, ignore_errors=True)
    built = ours.build_index(folder, cache)
    figures.build_wall, figures.build_cpu, figures.peak = built.wall, built.cpu, built.peak
    figures.disk = _measure_megabytes(cache)
    idle = ours.build_index(folder, cache)
    figures.idle_wall, figures.idle_cpu = idle.wall, idle.cpu
    with _change_file(folder):
        update = ours.build_index(folder, cache)
    figures.update_wall, figures.update_cpu = update.wall, update.cpu
    ours.build_index(folder, cache)
    start_time = time.perf_counter()
    with ours.open_engine(folder, cache) as engine:
        ours.search_code(engine, questions[0])
        figures.cold = (time.perf_counter() - start_time) * 1e3
        times = _measure_times(lambda number: ours.search_code(engine, questions[number]), len(questions))
        figures.median, figures.slowest = _get_median(times), _get_slowest(times)

        def search_filtered(number: int) -> object:
            return ours.search_code(engine, questions[number], **SEARCH_FILTERS[number % len(SEARCH_FILTERS)])

        times = _measure_times(search_filtered, len(questions))
        figures.filtered_median, figures.filtered_slowest = _get_median(times), _get_slowest(times)
    times = _measure_over_stdio(folder, cache, questions)
    figures.stdio_median, figures.stdio_slowest = _get_median(times), _get_slowest(times)
    return figures


def measure_semble(corpus: Corpus, questions: Sequence[str], cache: Path) -> SearchFigures:
    """Measure Semble with our word table as its model; it keeps its index in memory."""
    cost, answer = rivals.run_semble(corpus.prepare(), questions, cache)
    times = sorted(seconds * 1e3 for seconds in answer["took"])
    return SearchFigures(
        build_wall=answer["build"][0],
        build_cpu=answer["build"][1],
        peak=cost.peak,
        median=_get_median(times),
        slowest=_get_slowest(times),
    )


def measure_ripgrep(corpus: Corpus, questions: Sequence[str], cache: Path) -> SearchFigures:
    """Measure the search for one literal word in all files, including the start of the process."""
    program = rivals.find_ripgrep()
    folder = str(corpus.prepare())

    def search(number: int) -> object:
        word = max(questions[number].split(), key=len)
        try:
            return ours.run_measured([program, "--count", "--ignore-case", word, folder], cache)
        except BenchmarkError:
            return None  # nothing found is exit code 1

    times = _measure_times(search, min(len(questions), 40))
    return SearchFigures(median=_get_median(times), slowest=_get_slowest(times))


def measure_bare(corpus: Corpus, questions: Sequence[str], cache: Path) -> SearchFigures:
    """Measure the limits: parsing alone on one core, and one field of raw words in Tantivy."""
    folder = str(corpus.prepare())
    command = [sys.executable, str(PEERS_FOLDER / "bare.py")]
    parsed = json.loads(ours.run_measured([*command, "parse", folder], cache)[1])
    questions_json = json.dumps(list(questions))
    cost, printed = ours.run_measured([*command, "words", folder], cache, questions_json)
    words = json.loads(printed)
    times = sorted(seconds * 1e3 for seconds in words["took"])
    return SearchFigures(
        build_cpu=parsed["cpu"] + words["build"][1],
        parse_cpu=parsed["cpu"],
        peak=cost.peak,
        disk=words["size"] / 1e6,
        median=_get_median(times),
        slowest=_get_slowest(times),
    )


CONTESTANT_FUNCTIONS: dict[str, Callable[[Corpus, Sequence[str], Path], SearchFigures]] = {
    "cleats": measure_cleats,
    "semble": measure_semble,
    "ripgrep": measure_ripgrep,
    "bare": measure_bare,
}


def measure_contestant(
    name: str, corpus: Corpus, questions: Sequence[str], cache: Path, problems: list[str]
) -> SearchFigures:
    """Measure one contestant on one corpus; a problem is noted and leaves the figures empty."""
    try:
        return CONTESTANT_FUNCTIONS[name](corpus, questions, cache)
    except (BenchmarkError, PeerNotInstalledError) as error:
        problems.append(f"{name}, {corpus.name}: {error}")
        return SearchFigures()


@contextmanager
def _change_file(folder: Path) -> Iterator[None]:
    """Append blank lines to a file in the middle of the list, and restore it afterwards."""
    files = sorted(path for path in folder.rglob("*.py")) or sorted(folder.rglob("*.js"))
    file = files[len(files) // 2]
    original = file.read_bytes()
    file.write_bytes(original + b"\n\n\n")
    try:
        yield
    finally:
        file.write_bytes(original)


def _measure_over_stdio(folder: Path, cache: Path, questions: Sequence[str]) -> list[float]:
    environment = [f"CLEATS_CACHE_DIR={cache}", f"CLEATS_PROJECT_DIR={folder}"]
    server = [sys.executable, "-m", "cleats", "serve", "code"]
    with run_server(["env", *environment, *server]) as process, limit_time(SERVER_TIMEOUT_SECONDS):
        client = SkillsClient(process)
        process.send(build_initialize())
        client.read_frame()
        process.send(build_initialized())

        def search(number: int) -> object:
            return client.call_tool("search", query=questions[number], mode="code", top=10)

        search(0)
        return _measure_times(search, len(questions))


def _measure_times(work: Callable[[int], object], count: int) -> list[float]:
    times = []
    for number in range(count):
        start_time = time.perf_counter()
        work(number)
        times.append((time.perf_counter() - start_time) * 1e3)
    return sorted(times)


def _get_median(times: Sequence[float]) -> float:
    return times[len(times) // 2]


def _get_slowest(times: Sequence[float]) -> float:
    return times[min(len(times) - 1, len(times) * 99 // 100)]


def _measure_megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
