"""The packer's process."""

from cleats.toolsets.code.errands import carry_out
from cleats.toolsets.code.upkeep.packing import Order, carried_out

carry_out(Order, carried_out)
