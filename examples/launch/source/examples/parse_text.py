"""Read quantities from text and add them up."""

from measurekit import parse

height = parse("5 ft 11 in")
print(height.to("cm"))

total = parse("2.5kg") + parse("3 lb")
print(total)
