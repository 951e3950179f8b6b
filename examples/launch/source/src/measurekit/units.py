"""Units, and the registries that know them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from measurekit.errors import UnknownUnit


@dataclass(frozen=True)
class Unit:
    """A unit: what it measures, and how it relates to the base unit of its kind.

    A value in this unit times `factor` plus `offset` is the value in the base unit.
    """

    name: str
    kind: str
    factor: float
    offset: float = 0.0
    aliases: tuple[str, ...] = ()


class UnitRegistry:
    """Units by name and alias; names are looked up without regard to case."""

    def __init__(self, units: Iterable[Unit] = ()) -> None:
        self._units: dict[str, Unit] = {}
        for unit in units:
            self.add(unit)

    def add(self, unit: Unit) -> None:
        """Add a unit under its name and all its aliases."""
        for name in (unit.name, *unit.aliases):
            self._units[name.lower()] = unit

    def find(self, name: str) -> Unit:
        """Return the unit of this name, or raise UnknownUnit."""
        try:
            return self._units[name.strip().lower()]
        except KeyError:
            raise UnknownUnit(name) from None

    def kinds(self) -> list[str]:
        """List what can be measured, in alphabetical order."""
        return sorted({unit.kind for unit in self._units.values()})

    def __iter__(self) -> Iterator[Unit]:
        """Go through every unit once, in the order they were added."""
        return iter(dict.fromkeys(self._units.values()))


DEFAULT_UNITS = UnitRegistry(
    [
        Unit("m", "length", 1.0, aliases=("metre", "metres", "meter", "meters")),
        Unit("cm", "length", 0.01),
        Unit("mm", "length", 0.001),
        Unit("km", "length", 1000.0),
        Unit("in", "length", 0.0254, aliases=("inch", "inches")),
        Unit("ft", "length", 0.3048, aliases=("foot", "feet")),
        Unit("mi", "length", 1609.344, aliases=("mile", "miles")),
        Unit("g", "mass", 0.001, aliases=("gram", "grams")),
        Unit("kg", "mass", 1.0),
        Unit("lb", "mass", 0.45359237, aliases=("pound", "pounds")),
        Unit("s", "time", 1.0, aliases=("second", "seconds")),
        Unit("min", "time", 60.0, aliases=("minute", "minutes")),
        Unit("h", "time", 3600.0, aliases=("hour", "hours")),
        Unit("K", "temperature", 1.0, aliases=("kelvin",)),
        Unit("C", "temperature", 1.0, 273.15, aliases=("celsius",)),
        Unit("F", "temperature", 5 / 9, 459.67 * 5 / 9, aliases=("fahrenheit",)),
        Unit("l", "volume", 1.0, aliases=("litre", "litres", "liter", "liters")),
        Unit("ml", "volume", 0.001),
        Unit("gal", "volume", 3.785411784, aliases=("gallon", "gallons")),
    ]
)
"""The units that every program can use without a registry of its own."""
