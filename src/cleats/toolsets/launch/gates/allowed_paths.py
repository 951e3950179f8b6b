"""All changed files must be plain text files inside the allowed paths."""

from collections.abc import Iterator

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite, WorktreeChange
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard

EXECUTABLE_BITS = 0o111

OUTSIDE_PATH = IssueKind(
    "GATE_PATH_OUTSIDE", "blocker", "Undo the change, or widen allowed_paths in the run's configuration."
)
NOT_A_FILE = IssueKind("GATE_PATH_NOT_A_FILE", "blocker", "Replace it with a regular file.")
EXECUTABLE_FILE = IssueKind("GATE_PATH_EXECUTABLE", "blocker", "Remove the execute permission.")
BINARY_FILE = IssueKind("GATE_PATH_BINARY", "blocker", "Keep binary files out of a launch; text is UTF-8.")


def check_allowed_paths(site: LaunchSite) -> Iterator[GateMessage]:
    guard = WorktreeGuard(site.job.site, site.config["allowed_paths"])
    for change in site.changes:
        yield f"{change.kind} {change.path}"
        try:
            guard.check_path(change.path)
        except ToolError as violation:
            yield OUTSIDE_PATH.draft(violation.message, change.path)
        yield from _check_file_kind(site, change)


def _check_file_kind(site: LaunchSite, change: WorktreeChange) -> Iterator[GateMessage]:
    if change.kind == "gone":
        return
    if change.kind != "file":
        yield NOT_A_FILE.draft(f"a {change.kind} is not a regular file", change.path)
        return
    if change.mode & EXECUTABLE_BITS:
        yield EXECUTABLE_FILE.draft("a page cannot be a program", change.path)
    data = (site.job.site / change.path).read_bytes()
    if b"\0" in data:
        yield BINARY_FILE.draft("the file is binary", change.path)
        return
    try:
        data.decode()
    except UnicodeDecodeError:
        yield BINARY_FILE.draft("the file is not UTF-8", change.path)


GATE = Gate("allowed_paths", __doc__, check_allowed_paths, local_seconds=30.0, strict_seconds=60.0)
