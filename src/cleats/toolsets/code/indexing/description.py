"""What a generation says about itself."""

import time
from collections import Counter
from typing import Any, Final

from cleats.contract.versions import TOOLING_VERSION
from cleats.toolsets.code.discovery.files import Discovery
from cleats.toolsets.code.history.state import GitState
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.triage.archive import VIRTUAL

PROBLEMS: Final = 20
SKIPPED: Final = 200
"""How many are named; the rest is counted."""


def made_when(git: GitState | None) -> dict[str, Any]:
    """When it was made, by whom, and of which commit."""
    return {
        "tool": TOOLING_VERSION,
        "created": time.time(),
        "branch": git.branch if git else None,
        "commit": git.commit if git else None,
        "dirty": bool(git and git.dirty),
    }


def contents(catalogue: Catalogue, found: Discovery) -> dict[str, Any]:
    """What it holds, and what it left out."""
    counts = catalogue.counts(VIRTUAL)
    skipped = Counter(found.counts()) + Counter(counts.skipped)
    return {
        "counts": {
            "files": counts.files,
            "problems": counts.problems,
            "chunks": counts.chunks,
            "languages": counts.languages,
        },
        "problems": catalogue.problems(PROBLEMS),
        "source": found.source,
        "skipped": dict(sorted(skipped.items())),
        "left_out": sorted([*found.skipped, *catalogue.left_out()])[:SKIPPED],
    }
