"""What a fleet of N does, worked out from what one worker costs."""

from collections.abc import Iterator
from dataclasses import dataclass

BUSY = 0.7
"""The part of the database that a fleet may use: beyond it, waiting grows faster than work."""

SIZES = (2, 8, 32, 128, 512)
"""Cores."""


@dataclass(frozen=True, slots=True)
class Model:
    """The two things that a run needs: cores, and records in the database."""

    cpu: float
    """CPU seconds of one run."""
    transactions: float
    """Records of one run."""
    records: float
    """Records that the database takes in a second."""

    @property
    def wall(self) -> float:
        """Runs in a second that the database can take."""
        return BUSY * self.records / self.transactions

    def rate(self, cores: int) -> float:
        """Runs in a second of a fleet with so many cores."""
        return min(cores / self.cpu, self.wall)

    @property
    def cores_at_the_wall(self) -> float:
        """Cores beyond which the database is the limit."""
        return self.wall * self.cpu


def table(model: Model) -> Iterator[str]:
    """Fleets of several sizes."""
    yield "cores   runs/s   runs/day   limit"
    for cores in SIZES:
        rate = model.rate(cores)
        limit = "database" if rate >= model.wall else "cores"
        yield f"{cores:5}   {rate:6.2f}   {rate * 86_400:8,.0f}   {limit}"
    yield f"the database is the limit from {model.cores_at_the_wall:,.0f} cores on"
