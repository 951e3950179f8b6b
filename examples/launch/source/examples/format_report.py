"""Write a small table of converted weights."""

from measurekit import Quantity, format_quantity

for pounds in (1, 10, 100):
    weight = Quantity(pounds, "lb")
    print(f"{weight!s:>8} = {format_quantity(weight.to('kg'), decimals=3)}")
