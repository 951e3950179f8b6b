"""Convert a distance and a temperature."""

from measurekit import Quantity

distance = Quantity(26.2, "mi").to("km")
print(distance)

oven = Quantity(350, "F").to("C")
print(oven)
