"""What measurekit promises."""

import pytest

from measurekit import (
    DEFAULT_UNITS,
    IncompatibleUnits,
    Quantity,
    Unit,
    UnitRegistry,
    UnknownUnit,
    UnreadableQuantity,
    format_quantity,
    parse,
)
from measurekit.cli import main


def test_units_of_one_kind_are_converted():
    assert Quantity(1, "mi").to("km").is_close(Quantity(1.609344, "km"))
    assert Quantity(212, "F").to("C").is_close(Quantity(100, "C"))


def test_units_of_different_kinds_are_refused():
    with pytest.raises(IncompatibleUnits):
        Quantity(1, "kg").to("m")


def test_text_with_several_parts_is_added_up():
    assert parse("5 ft 11 in").is_close(Quantity(71, "in"))


@pytest.mark.parametrize("text", ["", "5", "five ft", "5 ft and 2"])
def test_text_that_is_no_quantity_is_refused(text):
    with pytest.raises(UnreadableQuantity):
        parse(text)


def test_a_registry_takes_new_units():
    registry = UnitRegistry(DEFAULT_UNITS)
    registry.add(Unit("furlong", "length", 201.168))
    assert Quantity(1, "furlong", registry).to("m").is_close(Quantity(201.168, "m"))
    with pytest.raises(UnknownUnit):
        DEFAULT_UNITS.find("furlong")


def test_thousands_are_grouped():
    assert format_quantity(Quantity(12345.6, "m")) == "12,345.60 m"


def test_the_command_prints_the_converted_quantity(capsys):
    assert main(["5 ft 11 in", "cm"]) == 0
    assert capsys.readouterr().out == "180.34 cm\n"


def test_the_command_reports_what_it_cannot_read(capsys):
    assert main(["tall", "cm"]) == 1
    assert "not a quantity" in capsys.readouterr().err
