"""The rate of larger fleets, calculated from the cost of one worker."""

from collections.abc import Iterator
from dataclasses import dataclass

MAX_DATABASE_LOAD = 0.7
"""The share of the database that a fleet may use; above it, waits grow faster than the work."""

FLEET_CORES = (2, 8, 32, 128, 512)
"""The core counts of the fleets in the table."""


@dataclass(frozen=True, slots=True)
class FleetModel:
    """The two resources that a run needs: cores, and records in the database."""

    cpu: float
    """CPU seconds of one run."""
    transactions: float
    """Records of one run."""
    records: float
    """Records that the database takes per second."""

    @property
    def max_database_rate(self) -> float:
        """Runs per second that the database can take."""
        return MAX_DATABASE_LOAD * self.records / self.transactions

    def compute_rate(self, cores: int) -> float:
        """Return the runs per second of a fleet with this many cores."""
        return min(cores / self.cpu, self.max_database_rate)

    @property
    def max_useful_cores(self) -> float:
        """The number of cores beyond which the database is the limit."""
        return self.max_database_rate * self.cpu


def render_table(model: FleetModel) -> Iterator[str]:
    """Render the rates of fleets of several sizes."""
    yield "cores   runs/s   runs/day   limit"
    for cores in FLEET_CORES:
        rate = model.compute_rate(cores)
        limit = "database" if rate >= model.max_database_rate else "cores"
        yield f"{cores:5}   {rate:6.2f}   {rate * 86_400:8,.0f}   {limit}"
    yield f"the database is the limit from {model.max_useful_cores:,.0f} cores on"
