"""What indexing and searching one corpus costs, us and the others."""

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.calls.process import Broken, running, time_limit
from bench.calls.servers import NotInstalled
from bench.calls.wire import initialize, initialized
from bench.code import ours, rivals
from bench.code.corpora import Corpus
from bench.skills.measure import Client

LIMIT = 300.0
PEERS = Path(__file__).parent / "peers"

FILTERS: Sequence[dict[str, Any]] = (
    {"lang": "python"},
    {"type": "function"},
    {"path": "**/*.py"},
    {"calls": "get"},
    {"type": "method", "param": "request"},
)


@dataclass(slots=True)
class Figures:
    """What a round measured: seconds of wall and CPU, milliseconds for questions, megabytes."""

    build_wall: float | None = None
    build_cpu: float | None = None
    parse_cpu: float | None = None
    """Of parsing the code alone, which no build can do without."""
    peak: float | None = None
    disk: float | None = None
    idle_wall: float | None = None
    idle_cpu: float | None = None
    update_wall: float | None = None
    update_cpu: float | None = None
    cold: float | None = None
    """From opening the index to the first answer."""
    median: float | None = None
    slowest: float | None = None
    """The slowest of a hundred."""
    filtered_median: float | None = None
    filtered_slowest: float | None = None
    stdio_median: float | None = None
    stdio_slowest: float | None = None


def cleats(corpus: Corpus, questions: Sequence[str], cache: Path) -> Figures:
    """Our own index, from nothing, then unchanged, then with one file changed."""
    folder = corpus.prepare()
    figures = Figures()
    shutil.rmtree(cache, ignore_errors=True)
    built = ours.build(folder, cache)
    figures.build_wall, figures.build_cpu, figures.peak = built.wall, built.cpu, built.peak
    figures.disk = _megabytes(cache)
    idle = ours.build(folder, cache)
    figures.idle_wall, figures.idle_cpu = idle.wall, idle.cpu
    with _changed(folder):
        update = ours.build(folder, cache)
    figures.update_wall, figures.update_cpu = update.wall, update.cpu
    ours.build(folder, cache)
    begun = time.perf_counter()
    with ours.opened(folder, cache) as engine:
        ours.ask(engine, questions[0])
        figures.cold = (time.perf_counter() - begun) * 1e3
        took = _times(lambda number: ours.ask(engine, questions[number]), len(questions))
        figures.median, figures.slowest = _middle(took), _worst(took)

        def filtered(number: int) -> object:
            return ours.ask(engine, questions[number], **FILTERS[number % len(FILTERS)])

        took = _times(filtered, len(questions))
        figures.filtered_median, figures.filtered_slowest = _middle(took), _worst(took)
    took = _over_stdio(folder, cache, questions)
    figures.stdio_median, figures.stdio_slowest = _middle(took), _worst(took)
    return figures


def semble(corpus: Corpus, questions: Sequence[str], cache: Path) -> Figures:
    """Semble with our word table as its model; it keeps its index in memory."""
    cost, found = rivals.semble(corpus.prepare(), questions, cache)
    took = sorted(each * 1e3 for each in found["took"])
    return Figures(
        build_wall=found["build"][0],
        build_cpu=found["build"][1],
        peak=cost.peak,
        median=_middle(took),
        slowest=_worst(took),
    )


def ripgrep(corpus: Corpus, questions: Sequence[str], cache: Path) -> Figures:
    """One literal word looked for in all files, the process and its start included."""
    program = rivals.ripgrep()
    folder = str(corpus.prepare())

    def search(number: int) -> object:
        word = max(questions[number].split(), key=len)
        try:
            return ours.run([program, "--count", "--ignore-case", word, folder], cache)
        except Broken:
            return None  # nothing found is exit code 1

    took = _times(search, min(len(questions), 40))
    return Figures(median=_middle(took), slowest=_worst(took))


def bare(corpus: Corpus, questions: Sequence[str], cache: Path) -> Figures:
    """The limits: parsing alone on one core, and one field of raw words in Tantivy."""
    folder = str(corpus.prepare())
    command = [sys.executable, str(PEERS / "bare.py")]
    parsed = json.loads(ours.run([*command, "parse", folder], cache)[1])
    given = json.dumps(list(questions))
    cost, printed = ours.run([*command, "words", folder], cache, given)
    words = json.loads(printed)
    took = sorted(each * 1e3 for each in words["took"])
    return Figures(
        build_cpu=parsed["cpu"] + words["build"][1],
        parse_cpu=parsed["cpu"],
        peak=cost.peak,
        disk=words["size"] / 1e6,
        median=_middle(took),
        slowest=_worst(took),
    )


CONTESTANTS: dict[str, Callable[[Corpus, Sequence[str], Path], Figures]] = {
    "cleats": cleats,
    "semble": semble,
    "ripgrep": ripgrep,
    "bare": bare,
}


def figures(
    name: str, corpus: Corpus, questions: Sequence[str], cache: Path, problems: list[str]
) -> Figures:
    """One contestant on one corpus; a problem is noted and leaves the figures empty."""
    try:
        return CONTESTANTS[name](corpus, questions, cache)
    except (Broken, NotInstalled) as error:
        problems.append(f"{name}, {corpus.name}: {error}")
        return Figures()


@contextmanager
def _changed(folder: Path) -> Iterator[None]:
    """One more line in a file of the middle, taken back afterwards."""
    files = sorted(path for path in folder.rglob("*.py")) or sorted(folder.rglob("*.js"))
    file = files[len(files) // 2]
    before = file.read_bytes()
    file.write_bytes(before + b"\n\n\n")
    try:
        yield
    finally:
        file.write_bytes(before)


def _over_stdio(folder: Path, cache: Path, questions: Sequence[str]) -> list[float]:
    environment = [f"CLEATS_CACHE_DIR={cache}", f"CLEATS_PROJECT_DIR={folder}"]
    server = [sys.executable, "-m", "cleats.cli.main", "serve", "code"]
    with running(["env", *environment, *server]) as process, time_limit(LIMIT):
        client = Client(process)
        process.send(initialize())
        client.frame()
        process.send(initialized())

        def search(number: int) -> object:
            return client.call("search", query=questions[number], mode="code", top=10)

        search(0)
        return _times(search, len(questions))


def _times(work: Callable[[int], object], count: int) -> list[float]:
    took = []
    for number in range(count):
        begun = time.perf_counter()
        work(number)
        took.append((time.perf_counter() - begun) * 1e3)
    return sorted(took)


def _middle(took: Sequence[float]) -> float:
    return took[len(took) // 2]


def _worst(took: Sequence[float]) -> float:
    return took[min(len(took) - 1, len(took) * 99 // 100)]


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
