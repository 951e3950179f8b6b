"""The launch stays within its budgets: files changed, lines of a file, bytes of a page."""

from collections.abc import Iterator

from cleats.toolsets.launch.gates.model import Gate, Said, blocker, error
from cleats.toolsets.launch.gates.site import Site

PAGE_BYTES = 500_000
"""A page larger than this is slow to read for anybody, and no page of ours should be."""


def check(site: Site) -> Iterator[Said]:
    budgets = site.config.get("budgets", {})
    most_files = budgets.get("max_files_changed")
    if most_files is not None and len(site.changes) > most_files:
        message = f"{len(site.changes)} files changed, {most_files} may"
        yield blocker("GATE_BUDGET_FILES", message)
    most_lines = budgets.get("max_lines_per_file")
    for change in site.changes:
        text = site.text(change.path) if change.kind == "file" else None
        if text is None:
            continue
        lines = text.count("\n")
        if most_lines is not None and lines > most_lines:
            message = f"the file has {lines} lines, {most_lines} are allowed"
            yield error("GATE_BUDGET_LINES", message, change.path)
        if len(text.encode()) > PAGE_BYTES:
            message = f"the file has more than {PAGE_BYTES} bytes"
            yield error("GATE_BUDGET_BYTES", message, change.path)


GATE = Gate(name="budgets", purpose=__doc__, check=check, local=30.0, strict=60.0)
