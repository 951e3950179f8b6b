"""Packing in a process of its own."""

from collections.abc import Callable

from cleats.toolsets.code import errands
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.upkeep.packing import Order, Packed

MODULE = "cleats.toolsets.code.upkeep"


async def run(order: Order, on_progress: Callable[[Progress], None], grace: float) -> Packed:
    """Pack in another process, which ends with this call however it ends.

    Raises:
        ToolError: it could not be done, or the packer died.
    """
    return await errands.send(MODULE, order, Packed, on_progress, "packer", grace)
