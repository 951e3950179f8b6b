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
from bench.assets.measure import AssetContestant
from bench.calls import machine
from bench.calls.process import BenchmarkError

ASSET_SIZES_BYTES = (1_000, 4_000, 20_000, 64_000, 256_000, 1_040_000)
"""Bytes of an asset; the last size is the largest that fits into a request of 1 MiB."""

USUAL_SIZE_BYTES = 20_000
"""Bytes of a real asset, the size that the targets apply to."""


def list_contestants(folder: Path) -> list[AssetContestant]:
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
        AssetContestant("rpc", "cleats, rpc wire", [*serve, "--wire", "rpc"]),
        AssetContestant("mcp", "cleats, mcp wire", serve, handshake=True),
        AssetContestant("parse", "parse alone (msgspec)", [*loops, "parse", str(folder)]),
        AssetContestant("bare", "bare loop, jsonschema-rs", [*loops, "bare", str(folder)]),
        AssetContestant("package", "bare loop, jsonschema", [*loops, "package", str(folder)]),
    ]


def main() -> int:
    """Return 0 if every contestant answered correctly, else 1; a missed target does not count."""
    options = _parse_options()
    if sys.platform != "linux":
        print("bench.assets reads /proc, so it runs on Linux only", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world.write_schemas(folder)
        before = machine.read_cpu_times()
        figures: dict[str, dict[str, list[Any]]] = {}
        try:
            for number in range(options.rounds):
                print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
                for part, contestant, figure in _run_round(folder, options.seconds):
                    figures.setdefault(part, {}).setdefault(contestant.title, []).append(figure)
        except BenchmarkError as error:
            print(f"failed: {error}", file=sys.stderr)
            return 1
        others_share = machine.read_cpu_times().compute_others_share(before)
    print(report.render_report(figures, others_share))
    ratios.write_ratios(options.ratios, report.compute_ratios(figures), others_share)
    if options.json is not None:
        plain = {p: {t: [asdict(f) for f in fs] for t, fs in rows.items()} for p, rows in figures.items()}
        options.json.write_text(json.dumps({"othersCpuShare": others_share, **plain}, indent=2) + "\n")
    return 0


def _run_round(folder: Path, seconds: float) -> Iterator[tuple[str, AssetContestant, Any]]:
    rpc, mcp, parse, bare, package = list_contestants(folder)
    asset = world.build_asset(USUAL_SIZE_BYTES)
    validate = ("validate_asset", {"asset": asset, "schema": world.ROOT_SCHEMA})
    diff = ("diff_assets", {"base": asset, "new": world.edit_asset(asset)})
    for contestant in (rpc, mcp):
        small = ("validate_asset", {"asset": world.build_asset(1000), "schema": world.ROOT_SCHEMA})
        yield report.START_HEADING, contestant, measure.measure_start(contestant, contestant.encode_request(*small))
    for contestant in (rpc, mcp, parse, bare, package):
        yield (
            report.VALIDATE_HEADING,
            contestant,
            measure.measure_pace(contestant, contestant.encode_request(*validate), seconds),
        )
    for contestant in (rpc, mcp, parse):
        yield (
            report.DIFF_HEADING,
            contestant,
            measure.measure_pace(contestant, contestant.encode_request(*diff), seconds),
        )
    for size in ASSET_SIZES_BYTES:
        frame = ("validate_asset", {"asset": world.build_asset(size), "schema": world.ROOT_SCHEMA})
        for contestant in (rpc, bare):
            part = report.format_size_heading(size)
            yield part, contestant, measure.measure_pace(contestant, contestant.encode_request(*frame), seconds / 3)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.assets",
        description="What validating and comparing assets costs, beside bare loops.",
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--seconds", type=float, default=1.5, help="seconds per measurement (default 1.5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure here")
    ratios.add_ratios_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
