"""The `measurekit` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from measurekit.formatting import format_quantity
from measurekit.parsing import parse


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert a quantity given on the command line and print it."""
    parser = argparse.ArgumentParser(prog="measurekit", description="Convert a quantity.")
    parser.add_argument("quantity", help='what to convert, such as "5 ft 11 in"')
    parser.add_argument("unit", help="the unit to convert to")
    parser.add_argument("--decimals", type=int, default=2, help="digits after the point")
    options = parser.parse_args(arguments)
    try:
        converted = parse(options.quantity).to(options.unit)
    except ValueError as error:
        sys.stderr.write(f"measurekit: {error}\n")
        return 1
    sys.stdout.write(format_quantity(converted, options.decimals) + "\n")
    return 0
