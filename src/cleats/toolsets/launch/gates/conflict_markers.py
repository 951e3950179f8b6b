"""No changed file may contain conflict markers of a merge."""

import re
from collections.abc import Iterator

from cleats.toolsets.launch.gates.model import FixCase, Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite

_START_PATTERN = re.compile(r"^<{7}(?: |$)")
_MIDDLE_PATTERN = re.compile(r"^(?:={7}|\|{7}(?: .*)?)$")
_END_PATTERN = re.compile(r"^>{7}(?: |$)")


def check_conflict_markers(site: LaunchSite) -> Iterator[GateMessage]:
    for path, text in site.iterate_changed_texts():
        for number, (_, _, is_marker) in enumerate(_read_sides(text), start=1):
            if is_marker:
                yield CONFLICT_MARKER.draft("a merge conflict marker", path, number)


def fix_conflicts(case: FixCase) -> str:
    """Keep the first side of each conflict: the text from before the merge."""
    return "\n".join(line for line, side, is_marker in _read_sides(case.text) if side != 2 and not is_marker)


def _read_sides(text: str) -> Iterator[tuple[str, int, bool]]:
    """Yield each line with its side of a conflict, 0 outside of one, and whether it is a marker.

    A row of `=` counts only inside a conflict: elsewhere it underlines a heading.
    """
    side = 0
    for line in text.split("\n"):
        is_marker = True
        if _START_PATTERN.match(line):
            side = 1
        elif _END_PATTERN.match(line):
            side = 0
        elif side and _MIDDLE_PATTERN.match(line):
            side = 2
        else:
            is_marker = False
        yield line, side, is_marker


CONFLICT_MARKER = IssueKind(
    "GATE_CONFLICT_MARKER", "blocker", "Resolve the conflict and remove the markers.", fix_conflicts
)

GATE = Gate("conflict_markers", __doc__, check_conflict_markers, local_seconds=30.0, strict_seconds=60.0)
