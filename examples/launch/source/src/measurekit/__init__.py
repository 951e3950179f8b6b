"""Convert, parse and format physical quantities."""

from measurekit.errors import IncompatibleUnits, UnknownUnit, UnreadableQuantity
from measurekit.formatting import format_quantity
from measurekit.parsing import parse
from measurekit.quantity import Quantity
from measurekit.units import DEFAULT_UNITS, Unit, UnitRegistry

__all__ = [
    "DEFAULT_UNITS",
    "IncompatibleUnits",
    "Quantity",
    "Unit",
    "UnitRegistry",
    "UnknownUnit",
    "UnreadableQuantity",
    "format_quantity",
    "parse",
]

__version__ = "1.2.0"
