"""The ratios that every benchmark passes to `bench.all`, and the CPU share of other processes.

A figure belongs to the machine it was taken on; a ratio of two figures from one run can be compared
with the same ratio of another commit or another machine.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Ratio:
    """Our figure divided by a peer's, for the same work in the same run."""

    name: str
    """The measured quantity; its text must not change, since runs are matched by it."""
    beside: str
    value: float
    more: bool = False
    """True if more is better, as for rates and scores; False for costs."""


def add_ratios_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that asks a benchmark for its ratios."""
    parser.add_argument("--ratios", type=Path, metavar="FILE", help="also write the ratios here")


def write_ratios(path: Path | None, ratios: Iterable[Ratio], others_share: float) -> None:
    """Write the ratios to the requested file, with the CPU share of other processes."""
    if path is not None:
        document = {"others": others_share, "ratios": [asdict(ratio) for ratio in ratios]}
        path.write_text(json.dumps(document), encoding="utf-8")


def parse_ratios(document: Mapping[str, Any]) -> list[Ratio]:
    """Return the ratios in a document that `write_ratios` wrote."""
    return [Ratio(**ratio) for ratio in document["ratios"]]


def divide_figures(
    name: str, our_value: float | None, peer_values: Mapping[str, float | None], *, more_is_better: bool = False
) -> list[Ratio]:
    """Return the ratios of one figure to those of several peers; unmeasured peers are left out."""
    return [
        Ratio(name, peer, our_value / value, more_is_better)
        for peer, value in peer_values.items()
        if our_value and value
    ]
