"""The launch must stay within its budgets: files changed, lines per file, bytes per page."""

from collections.abc import Iterator

from cleats.toolsets.launch.gates.model import Gate, GateMessage, LaunchSite, make_blocker, make_error

MAX_PAGE_BYTES = 500_000
"""A larger page is slow for every reader, and no page of a launch needs to be larger."""


def check_budgets(site: LaunchSite) -> Iterator[GateMessage]:
    budgets = site.config.get("budgets", {})
    max_files = budgets.get("max_files_changed")
    if max_files is not None and len(site.changes) > max_files:
        message = f"{len(site.changes)} files changed, {max_files} may"
        yield make_blocker("GATE_BUDGET_FILES", message)
    max_lines = budgets.get("max_lines_per_file")
    for change in site.changes:
        text = site.read_text(change.path) if change.kind == "file" else None
        if text is None:
            continue
        lines = text.count("\n")
        if max_lines is not None and lines > max_lines:
            message = f"the file has {lines} lines, {max_lines} are allowed"
            yield make_error("GATE_BUDGET_LINES", message, change.path)
        if len(text.encode()) > MAX_PAGE_BYTES:
            message = f"the file has more than {MAX_PAGE_BYTES} bytes"
            yield make_error("GATE_BUDGET_BYTES", message, change.path)


GATE = Gate(name="budgets", purpose=__doc__, check=check_budgets, local_seconds=30.0, strict_seconds=60.0)
