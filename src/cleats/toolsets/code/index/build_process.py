"""A build in a separate process."""

from collections.abc import Callable

from msgspec import Struct

from cleats.system import worker_process
from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.index.progress import BuildProgress, BuildReport

BUILDER_MODULE = "cleats.toolsets.code.index"


class BuildRequest(Struct, frozen=True):
    """The repository to build, the cache folder, and the options."""

    root: str
    cache_dir: str
    options: BuildOptions


async def run_build(request: BuildRequest, on_progress: Callable[[BuildProgress], None], grace: float) -> BuildReport:
    """Build in another process, which ends with this call however it ends.

    Raises:
        ToolError: the build failed, or the builder died.
    """
    return await worker_process.send_task(BUILDER_MODULE, request, BuildReport, on_progress, "builder", grace)
