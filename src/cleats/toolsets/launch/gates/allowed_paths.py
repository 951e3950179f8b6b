"""Everything that changed lies in the allowed paths, and is a plain text file."""

from collections.abc import Iterator

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.gates.model import Gate, Said, blocker
from cleats.toolsets.launch.gates.site import Change, Site
from cleats.toolsets.launch.patching.fence import Fence

EXECUTABLE = 0o111


def check(site: Site) -> Iterator[Said]:
    fence = Fence(site.job.site, site.config["allowed_paths"])
    for change in site.changes:
        yield f"{change.kind} {change.path}"
        try:
            fence.check(change.path)
        except ToolError as refused:
            yield blocker("GATE_PATH_OUTSIDE", refused.message, change.path)
        yield from _nature(site, change)


def _nature(site: Site, change: Change) -> Iterator[Said]:
    if change.kind == "gone":
        return
    if change.kind != "file":
        message = f"a {change.kind} is not a plain file"
        yield blocker("GATE_PATH_NOT_A_FILE", message, change.path)
        return
    if change.mode & EXECUTABLE:
        yield blocker("GATE_PATH_EXECUTABLE", "a page cannot be a program", change.path)
    data = (site.job.site / change.path).read_bytes()
    if b"\0" in data:
        yield blocker("GATE_PATH_BINARY", "the file is binary", change.path)
        return
    try:
        data.decode()
    except UnicodeDecodeError:
        yield blocker("GATE_PATH_BINARY", "the file is not UTF-8", change.path)


GATE = Gate(name="allowed_paths", purpose=__doc__, check=check, local=30.0, strict=60.0)
