"""Define a unit of your own and convert with it."""

from measurekit import DEFAULT_UNITS, Quantity, Unit, UnitRegistry

registry = UnitRegistry(DEFAULT_UNITS)
registry.add(Unit("furlong", "length", 201.168, aliases=("furlongs",)))

race = Quantity(8, "furlongs", registry)
print(race.to("km"))
