"""Quantities written for a reader."""

from measurekit.quantity import Quantity


def format_quantity(quantity: Quantity, decimals: int = 2, *, separator: str = " ") -> str:
    """Write a quantity with a fixed number of decimals.

    Thousands are grouped with commas: 12345.6 metres becomes "12,345.60 m".
    """
    return f"{quantity.value:,.{decimals}f}{separator}{quantity.unit}"
