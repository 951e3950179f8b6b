"""A number with a unit."""

from __future__ import annotations

from dataclasses import dataclass, field

from measurekit.errors import IncompatibleUnits
from measurekit.units import DEFAULT_UNITS, UnitRegistry


@dataclass(frozen=True)
class Quantity:
    """A number with a unit, such as 5 miles.

    Quantities of the same kind can be converted, added and compared, whatever their units.
    """

    value: float
    unit: str
    registry: UnitRegistry = field(default=DEFAULT_UNITS, repr=False, compare=False)

    def to(self, unit: str) -> Quantity:
        """Convert to another unit of the same kind."""
        source, target = self.registry.find(self.unit), self.registry.find(unit)
        if source.kind != target.kind:
            raise IncompatibleUnits(self.unit, unit)
        base = self.value * source.factor + source.offset
        return Quantity((base - target.offset) / target.factor, unit, self.registry)

    def is_close(self, other: Quantity, tolerance: float = 1e-9) -> bool:
        """Compare two quantities, allowing for rounding."""
        return abs(self.value - other.to(self.unit).value) <= tolerance

    def __add__(self, other: Quantity) -> Quantity:
        """Add two quantities; the sum has the unit of the first."""
        return Quantity(self.value + other.to(self.unit).value, self.unit, self.registry)

    def __lt__(self, other: Quantity) -> bool:
        """Compare two quantities of the same kind."""
        return self.value < other.to(self.unit).value

    def __str__(self) -> str:
        """Write the number and the unit, as short as it can be."""
        return f"{self.value:.6g} {self.unit}"
