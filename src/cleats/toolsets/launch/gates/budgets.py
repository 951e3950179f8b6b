"""The launch must stay within its budgets: files changed, lines per file, bytes per page."""

from collections.abc import Iterator

from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite

MAX_PAGE_BYTES = 500_000
"""A larger page is slow for every reader, and no page of a launch needs to be larger."""

TOO_MANY_FILES = IssueKind("GATE_BUDGET_FILES", "blocker", "Launch fewer sections, or raise budgets.max_files_changed.")
TOO_MANY_LINES = IssueKind("GATE_BUDGET_LINES", "error", "Split the page, or raise budgets.max_lines_per_file.")
TOO_MANY_BYTES = IssueKind("GATE_BUDGET_BYTES", "error", "Split the page.")


def check_budgets(site: LaunchSite) -> Iterator[GateMessage]:
    budgets = site.config.get("budgets", {})
    max_files = budgets.get("max_files_changed")
    if max_files is not None and len(site.changes) > max_files:
        yield TOO_MANY_FILES.draft(f"{len(site.changes)} files changed; the limit is {max_files}")
    max_lines = budgets.get("max_lines_per_file")
    for path, text in site.iterate_changed_texts():
        lines = text.count("\n")
        if max_lines is not None and lines > max_lines:
            yield TOO_MANY_LINES.draft(f"the file has {lines} lines, {max_lines} are allowed", path)
        if len(text.encode()) > MAX_PAGE_BYTES:
            yield TOO_MANY_BYTES.draft(f"the file has more than {MAX_PAGE_BYTES} bytes", path)


GATE = Gate("budgets", __doc__, check_budgets, local_seconds=30.0, strict_seconds=60.0)
