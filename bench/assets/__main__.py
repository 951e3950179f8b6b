"""The command: `python -m bench.assets`."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import ratios
from bench.assets import measure, report, world
from bench.assets.measure import Contestant
from bench.calls import machine
from bench.calls.process import Broken

SIZES = (1_000, 4_000, 20_000, 64_000, 256_000, 1_040_000)
"""Bytes of an asset; the last is what fits into a request of 1 MiB."""

USUAL = 20_000
"""The size of a real asset, for which the targets hold."""


def contestants(folder: Path) -> list[Contestant]:
    environ = ["env", f"SYN_SCHEMAS_DIR={folder}", f"CLEATS_DATA_DIR={folder}/data"]
    serve = [
        *environ,
        "MCP_READY_FILE=/dev/null",
        sys.executable,
        "-m",
        "cleats",
        "serve",
        "assets",
    ]
    loops = [sys.executable, str(Path(__file__).parent / "peers" / "loops.py")]
    return [
        Contestant("rpc", "cleats, rpc wire", [*serve, "--wire", "rpc"]),
        Contestant("mcp", "cleats, mcp wire", serve, handshake=True),
        Contestant("parse", "parse alone (msgspec)", [*loops, "parse", str(folder)]),
        Contestant("bare", "bare loop, jsonschema-rs", [*loops, "bare", str(folder)]),
        Contestant("package", "bare loop, jsonschema", [*loops, "package", str(folder)]),
    ]


def main() -> int:
    """Exit 0 when every contestant answered rightly, else 1; a missed target does not count."""
    options = _options()
    if sys.platform != "linux":
        print("bench.assets reads /proc, so it runs on Linux only", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world.write_schemas(folder)
        before = machine.read()
        figures: dict[str, dict[str, list[Any]]] = {}
        try:
            for number in range(options.rounds):
                print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
                for part, contestant, figure in _round(folder, options.seconds):
                    figures.setdefault(part, {}).setdefault(contestant.title, []).append(figure)
        except Broken as error:
            print(f"failed: {error}", file=sys.stderr)
            return 1
        others = machine.read().others_since(before)
    print(report.text(figures, others))
    ratios.write(options.ratios, report.ratios(figures), others)
    if options.json is not None:
        plain = {
            p: {t: [asdict(f) for f in fs] for t, fs in rows.items()} for p, rows in figures.items()
        }
        options.json.write_text(json.dumps({"othersCpuShare": others, **plain}, indent=2) + "\n")
    return 0


def _round(folder: Path, seconds: float) -> Iterator[tuple[str, Contestant, Any]]:
    rpc, mcp, parse, bare, package = contestants(folder)
    made = world.asset(USUAL)
    validate = ("validate_asset", {"asset": made, "schema": world.ROOT})
    diff = ("diff_assets", {"base": made, "new": world.changed(made)})
    for each in (rpc, mcp):
        small = ("validate_asset", {"asset": world.asset(1000), "schema": world.ROOT})
        yield report.START, each, measure.start(each, each.frame(*small))
    for each in (rpc, mcp, parse, bare, package):
        yield report.VALIDATE, each, measure.pace(each, each.frame(*validate), seconds)
    for each in (rpc, mcp, parse):
        yield report.DIFF, each, measure.pace(each, each.frame(*diff), seconds)
    for size in SIZES:
        frame = ("validate_asset", {"asset": world.asset(size), "schema": world.ROOT})
        for each in (rpc, bare):
            part = report.size(size)
            yield part, each, measure.pace(each, each.frame(*frame), seconds / 3)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.assets",
        description="What validating and comparing assets costs, beside bare loops.",
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument(
        "--seconds", type=float, default=1.5, help="seconds per measurement (default 1.5)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure here")
    ratios.add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
