"""All changed files must be plain text files inside the allowed paths."""

from collections.abc import Iterator

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.gates.model import Gate, GateMessage, LaunchSite, WorktreeChange, make_blocker
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard

EXECUTABLE_BITS = 0o111


def check_allowed_paths(site: LaunchSite) -> Iterator[GateMessage]:
    guard = WorktreeGuard(site.job.site, site.config["allowed_paths"])
    for change in site.changes:
        yield f"{change.kind} {change.path}"
        try:
            guard.check_path(change.path)
        except ToolError as violation:
            yield make_blocker("GATE_PATH_OUTSIDE", violation.message, change.path)
        yield from _check_file_kind(site, change)


def _check_file_kind(site: LaunchSite, change: WorktreeChange) -> Iterator[GateMessage]:
    if change.kind == "gone":
        return
    if change.kind != "file":
        message = f"a {change.kind} is not a plain file"
        yield make_blocker("GATE_PATH_NOT_A_FILE", message, change.path)
        return
    if change.mode & EXECUTABLE_BITS:
        yield make_blocker("GATE_PATH_EXECUTABLE", "a page cannot be a program", change.path)
    data = (site.job.site / change.path).read_bytes()
    if b"\0" in data:
        yield make_blocker("GATE_PATH_BINARY", "the file is binary", change.path)
        return
    try:
        data.decode()
    except UnicodeDecodeError:
        yield make_blocker("GATE_PATH_BINARY", "the file is not UTF-8", change.path)


GATE = Gate(name="allowed_paths", purpose=__doc__, check=check_allowed_paths, local_seconds=30.0, strict_seconds=60.0)
