"""A build in a process of its own."""

from collections.abc import Callable

from msgspec import Struct

from cleats.toolsets.code import errands
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.indexing.report import BuildReport

MODULE = "cleats.toolsets.code.indexing"


class Order(Struct, frozen=True):
    """What to build, and where it is kept."""

    root: str
    cache_dir: str
    options: Options


async def run(order: Order, on_progress: Callable[[Progress], None], grace: float) -> BuildReport:
    """Build in another process, which ends with this call however it ends.

    Raises:
        ToolError: it could not be done, or the builder died.
    """
    return await errands.send(MODULE, order, BuildReport, on_progress, "builder", grace)
