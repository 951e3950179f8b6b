"""No changed file holds the marks that a merge left behind."""

import re
from collections.abc import Iterator

from cleats.toolsets.launch.gates.model import Gate, Said, blocker
from cleats.toolsets.launch.gates.site import Site

OPENS = re.compile(r"^<{7}(?: |$)")
MIDDLE = re.compile(r"^(?:={7}|\|{7}(?: .*)?)$")
CLOSES = re.compile(r"^>{7}(?: |$)")


def check(site: Site) -> Iterator[Said]:
    for change in site.changes:
        text = site.text(change.path) if change.kind == "file" else None
        if text is None:
            continue
        for line in marks(text):
            message = "a mark of an unfinished merge"
            yield blocker("GATE_CONFLICT_MARKER", message, change.path, line)


def marks(text: str) -> list[int]:
    """The lines that are marks. A row of `=` counts only inside a conflict: it is a heading too."""
    found = []
    inside = False
    for number, line in enumerate(text.split("\n"), start=1):
        if OPENS.match(line):
            inside = True
            found.append(number)
        elif CLOSES.match(line):
            inside = False
            found.append(number)
        elif inside and MIDDLE.match(line):
            found.append(number)
    return found


GATE = Gate(name="conflict_markers", purpose=__doc__, check=check, local=30.0, strict=60.0)
