"""No changed file may contain conflict markers of a merge."""

import re
from collections.abc import Iterator

from cleats.toolsets.launch.gates.model import Gate, GateMessage, LaunchSite, make_blocker

CONFLICT_START_PATTERN = re.compile(r"^<{7}(?: |$)")
CONFLICT_MIDDLE_PATTERN = re.compile(r"^(?:={7}|\|{7}(?: .*)?)$")
CONFLICT_END_PATTERN = re.compile(r"^>{7}(?: |$)")


def check_conflict_markers(site: LaunchSite) -> Iterator[GateMessage]:
    for change in site.changes:
        text = site.read_text(change.path) if change.kind == "file" else None
        if text is None:
            continue
        for line in find_conflict_markers(text):
            message = "a mark of an unfinished merge"
            yield make_blocker("GATE_CONFLICT_MARKER", message, change.path, line)


def find_conflict_markers(text: str) -> list[int]:
    """Return the numbers of the marker lines.

    A row of `=` counts only inside a conflict: elsewhere it underlines a heading.
    """
    marker_lines = []
    in_conflict = False
    for number, line in enumerate(text.split("\n"), start=1):
        if CONFLICT_START_PATTERN.match(line):
            in_conflict = True
            marker_lines.append(number)
        elif CONFLICT_END_PATTERN.match(line):
            in_conflict = False
            marker_lines.append(number)
        elif in_conflict and CONFLICT_MIDDLE_PATTERN.match(line):
            marker_lines.append(number)
    return marker_lines


GATE = Gate(
    name="conflict_markers", purpose=__doc__, check=check_conflict_markers, local_seconds=30.0, strict_seconds=60.0
)
