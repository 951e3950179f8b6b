"""The command: `python -m bench.explore`."""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench import ratios
from bench.calls import machine
from bench.calls.servers import PeerNotInstalledError
from bench.code.corpora import ALL_CORPORA
from cleats.app import load_toolsets, open_dispatcher
from cleats.contract.outcome import Done
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings
from cleats.toolsets.code.explore.ripgrep import find_ripgrep

CORPUS_NAME = "medium"
"""Django: some 7,000 files."""

QUESTIONS = (
    "how are migrations applied to the database",
    "where is the csrf token checked",
    "parse a multipart upload",
    "quote a table name for oracle",
)
PATTERNS = ("get_queryset", "raise ValueError", "def __init__(self, request", "no_such_text_at_all")


class CallCost(NamedTuple):
    """The seconds of one call: on the clock, and of CPU with all its processes, which a busy machine hardly touches."""

    wall: float
    cpu: float


def main() -> int:
    """Return 0 if every call was answered, else 1."""
    options = _parse_options()
    program = find_ripgrep()
    if program is None:
        print("bench.explore needs ripgrep", file=sys.stderr)
        return 2
    try:
        root = options.root or next(corpus for corpus in ALL_CORPORA if corpus.name == CORPUS_NAME).prepare()
    except PeerNotInstalledError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    before = machine.read_cpu_times()
    figures = asyncio.run(_measure_rounds(root, program, options.rounds))
    others_share = machine.read_cpu_times().compute_others_share(before)
    print(render_report(figures, others_share))
    grep, bare = (statistics.median(cost.cpu for cost in figures[name]) for name in ("grep_code", "ripgrep alone"))
    ratios.write_ratios(options.ratios, ratios.divide_figures("grep_code", grep, {"ripgrep": bare}), others_share)
    return 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.explore", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--root", type=Path, help="measure in this repository instead")
    ratios.add_ratios_option(parser)
    return parser.parse_args()


async def _measure_rounds(root: Path, program: str, rounds: int) -> dict[str, list[CallCost]]:
    """Return the costs of every call; each round has a new server, so its first call is a first call."""
    names = ("find_code, first call", "find_code, next calls", "grep_code", "grep_code, again", "ripgrep alone")
    figures: dict[str, list[CallCost]] = {name: [] for name in names}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            settings = Settings(project_dir=root, cache_dir=Path(folder), data_dir=Path(folder), log_level="error")
            status = ServerStatus()
            toolsets = load_toolsets(settings, ["explore"], status)
            async with open_dispatcher(settings, toolsets, status) as dispatcher:
                await _measure_round(dispatcher, root, program, figures)
    return figures


async def _measure_round(dispatcher: Dispatcher, root: Path, program: str, figures: dict[str, list[CallCost]]) -> None:
    for position, question in enumerate(QUESTIONS):
        cost = await _measure_call(dispatcher, "find_code", {"query": question})
        figures["find_code, next calls" if position else "find_code, first call"].append(cost)
    for pattern in PATTERNS:
        # So much as `grep_code` reads, and nothing that it does with it.
        command = [program, "--no-config", "--fixed-strings", "--line-number", "--hidden", "--glob=!.git"]
        call = {"pattern": pattern, "ignore_case": False}
        figures["grep_code"].append(await _measure_call(dispatcher, "grep_code", call))
        figures["ripgrep alone"].append(await asyncio.to_thread(_measure_command, [*command, "--", pattern, "."], root))
        figures["grep_code, again"].append(await _measure_call(dispatcher, "grep_code", call))


def _measure_command(command: list[str], root: Path) -> CallCost:
    started, cpu = time.perf_counter(), _read_cpu_seconds()
    subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=False)
    return CallCost(time.perf_counter() - started, _read_cpu_seconds() - cpu)


def _read_cpu_seconds() -> float:
    return sum(os.times()[:4])


async def _measure_call(dispatcher: Dispatcher, tool: str, arguments: dict[str, Any]) -> CallCost:
    started, cpu = time.perf_counter(), _read_cpu_seconds()
    outcome = await dispatcher.dispatch(ToolCall(tool=tool, arguments=arguments))
    assert isinstance(outcome, Done), outcome
    return CallCost(time.perf_counter() - started, _read_cpu_seconds() - cpu)


def render_report(figures: dict[str, list[CallCost]], others_share: float) -> str:
    """Return the median and the slowest of each kind of call."""
    lines = [f"{'seconds':24}{'median':>10}{'slowest':>10}{'CPU':>10}"]
    for name, costs in figures.items():
        walls, cpus = zip(*costs, strict=True)
        lines.append(f"{name:24}{statistics.median(walls):10.3f}{max(walls):10.3f}{statistics.median(cpus):10.3f}")
    return "\n".join([*lines, f"others took {others_share:.0%} of the CPUs"])


if __name__ == "__main__":
    sys.exit(main())
