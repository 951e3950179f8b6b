"""What every benchmark gives to `bench.all`: ratios, and how much of the machine was its own.

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
    """Ours divided by a peer's, for the same work in the same run."""

    name: str
    """What was measured; the same words in every commit, since runs are matched by them."""
    beside: str
    value: float
    more: bool = False
    """Whether more is better, as for rates and scores; else less is, as for costs."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """The option by which a benchmark is asked for its ratios."""
    parser.add_argument("--ratios", type=Path, metavar="FILE", help="also write the ratios here")


def write(path: Path | None, ratios: Iterable[Ratio], others: float) -> None:
    """Leave the ratios where they were asked for. `others` is the share of the CPUs we had not."""
    if path is not None:
        document = {"others": others, "ratios": [asdict(each) for each in ratios]}
        path.write_text(json.dumps(document), encoding="utf-8")


def read(document: Mapping[str, Any]) -> list[Ratio]:
    """The ratios in what `write` left."""
    return [Ratio(**each) for each in document["ratios"]]


def divided(
    name: str, ours: float | None, theirs: Mapping[str, float | None], *, more: bool = False
) -> list[Ratio]:
    """The ratios of one figure to those of several peers; what was not measured is left out."""
    return [
        Ratio(name, peer, ours / value, more) for peer, value in theirs.items() if ours and value
    ]
