"""Quantities read from text."""

from __future__ import annotations

import re

from measurekit.errors import UnreadableQuantity
from measurekit.quantity import Quantity
from measurekit.units import DEFAULT_UNITS, UnitRegistry

_PART = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def parse(text: str, registry: UnitRegistry = DEFAULT_UNITS) -> Quantity:
    """Read a quantity from text, such as "2.5kg" or "5 ft 11 in".

    Several parts are added up; the result has the unit of the first part.
    """
    total: Quantity | None = None
    position = 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise UnreadableQuantity(text)
        quantity = Quantity(float(part.group(1)), part.group(2), registry)
        total = quantity if total is None else total + quantity
        position = part.end()
    if total is None:
        raise UnreadableQuantity(text)
    return total
